/**
 * Messages, commands and records are values: each driver hands out copies, made as a network would make them. So neither
 * what a sender does to its message afterwards nor what a receiver does to the one it got is seen by anybody else, and the
 * fields come in the order of their shape, however they were written down.
 */
import { clone } from "./plain.ts";
import type { CommandOf, MessageOf, Protocol, RecordOf, Tagged, Vocabulary } from "./protocol.ts";
import type { ShapeNode, Shapes } from "./shape.ts";
import type { Stimulus } from "./step.ts";

// Shapes say what is inside.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Copy = (value: any) => any;
type Fields = Readonly<Record<string, ShapeNode>>;

/** Copies of what a protocol is given and gives away. */
export interface Copies<V extends Vocabulary> {
  message(message: MessageOf<V>): MessageOf<V>;
  command(command: CommandOf<V>): CommandOf<V>;
  record(record: RecordOf<V>): RecordOf<V>;
  /** With a copy of what is in it. */
  stimulus(stimulus: Stimulus<V>): Stimulus<V>;
}

export function copiesOf<V extends Vocabulary>({ shapes }: Protocol<V>): Copies<V> {
  const message = copierOf<MessageOf<V>>(shapes.message);
  const command = copierOf<CommandOf<V>>(shapes.command);
  const record = copierOf<RecordOf<V>>(shapes.record);
  return {
    message,
    command,
    record,
    stimulus(stimulus) {
      switch (stimulus.kind) {
        case "receive":
          return { ...stimulus, message: message(stimulus.message) };
        case "command":
          return { ...stimulus, command: command(stimulus.command) };
        case "replay":
          return { ...stimulus, record: record(stimulus.record) };
        default:
          return stimulus;
      }
    },
  };
}

/** What has none of the shapes, as within a stack of layers, is cloned as it is. */
function copierOf<U extends Tagged>(shapes: Shapes<U> | Record<never, never> = {}): (value: U) => U {
  const copies = new Map(
    Object.entries(shapes as Record<string, Fields>).map(([type, fields]) => [type, structCopy(fields, type)]),
  );
  return (value) => (copies.get(value.type) ?? clone)(value);
}

function copyOf(shape: ShapeNode): Copy {
  switch (shape.kind) {
    case "list": {
      const item = copyOf(shape.items);
      return item === same ? (values) => values.slice() : (values) => values.map((value: unknown) => item(value));
    }
    case "nullable": {
      const inner = copyOf(shape.value);
      return inner === same ? same : (value) => (value === null ? null : inner(value));
    }
    case "struct":
      return structCopy(shape.fields);
    case "variants": {
      const copies = new Map(
        Object.entries(shape.variants).map(([type, variant]) => [
          type,
          variant.kind === "struct" ? structCopy(variant.fields, type) : copyOf(variant),
        ]),
      );
      return (value) => (copies.get(value.type) ?? clone)(value);
    }
    default:
      return same;
  }
}

const same: Copy = (value) => value;

/** `type` comes first, as it does on a network. */
function structCopy(fields: Fields, type?: string): Copy {
  const names = Object.keys(fields);
  const copies = Object.values(fields).map(copyOf);
  return (value) => {
    const copy: Record<string, unknown> = type === undefined ? {} : { type };
    for (let i = 0; i < names.length; i++) {
      const name = names[i] as string;
      copy[name] = (copies[i] as Copy)(value[name]);
    }
    return copy;
  };
}
