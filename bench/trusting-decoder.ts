/** The decoder of `src/runtime/wire.ts` without its checks: it believes every byte. What those cost is the difference. */
import type { ShapeNode } from "../src/core/shape.ts";

export interface Place {
  readonly buffer: Buffer;
  position: number;
}

type Decode = (from: Place) => unknown;

export function trustingDecoder(shape: ShapeNode): Decode {
  switch (shape.kind) {
    case "natural":
      return natural;
    case "real":
      return real;
    case "boolean":
      return (from) => byte(from) === 1;
    case "text":
      return text;
    case "oneOf":
      return (from) => shape.values[byte(from)];
    case "nullable": {
      const inner = trustingDecoder(shape.value);
      return (from) => (byte(from) === 0 ? null : inner(from));
    }
    case "list":
      return list(trustingDecoder(shape.items));
    case "struct":
      return struct(shape.fields);
    case "variants": {
      const decoders = Object.entries(shape.variants).map(([type, variant]) =>
        variant.kind === "struct" ? struct(variant.fields, type) : trustingDecoder(variant),
      );
      return (from) => (decoders[byte(from)] as Decode)(from);
    }
    case "perNode":
    case "chunk":
    case "evolving":
      throw new Error("no message of an algorithm is measured that has such a field");
  }
}

const byte = (from: Place): number => from.buffer[from.position++] as number;

function real(from: Place): number {
  from.position += 8;
  return from.buffer.readDoubleLE(from.position - 8);
}

function natural(from: Place): number {
  let value = 0;
  for (let weight = 1; ; weight *= 128) {
    const part = byte(from);
    value += (part & 0x7f) * weight;
    if (part < 0x80) return value;
  }
}

/** Whether a text is ASCII has to be looked at even so: it decides how to decode it. */
function text(from: Place): string {
  const bytes = natural(from);
  const start = from.position;
  from.position += bytes;
  for (let i = start; i < from.position; i++)
    if ((from.buffer[i] as number) > 0x7f) return from.buffer.toString("utf8", start, from.position);
  return from.buffer.toString("latin1", start, from.position);
}

function list(item: Decode): Decode {
  return (from) => {
    const length = natural(from);
    const values: unknown[] = [];
    for (let i = 0; i < length; i++) values.push(item(from));
    return values;
  };
}

function struct(fields: Readonly<Record<string, ShapeNode>>, type?: string): Decode {
  const names = Object.keys(fields);
  const decoders = Object.values(fields).map(trustingDecoder);
  return (from) => {
    const value: Record<string, unknown> = type === undefined ? {} : { type };
    for (let i = 0; i < names.length; i++) value[names[i] as string] = (decoders[i] as Decode)(from);
    return value;
  };
}
