/**
 * Shapes describe at run time what TypeScript describes at compile time: the fields of a message, a command or a journal
 * record. They are data, so one declaration has several uses. `problem` validates outside input, and the wire codec is derived
 * from the same shape, so that everything it decodes has the right shape by construction.
 */
import { Chunk } from "./chunk.ts";
import { unexpected } from "./errors.ts";
import { isNodeId, type PerNode } from "./per-node.ts";

/** A shape. The phantom `T` is the TypeScript type of its values. */
export type Shape<T> = ShapeNode & { readonly of?: T };

/** The untyped form of a shape. `text`, `chunk` and `list` are bounded, so that input from outside cannot grow without limit. */
export type ShapeNode =
  | { readonly kind: "natural" | "real" | "boolean" }
  | { readonly kind: "text" | "chunk"; readonly maxBytes: number }
  | { readonly kind: "oneOf"; readonly values: readonly string[] }
  | { readonly kind: "list"; readonly items: ShapeNode; readonly maxItems: number }
  | { readonly kind: "perNode"; readonly value: ShapeNode; readonly maxNodes: number }
  | { readonly kind: "nullable"; readonly value: ShapeNode }
  /** `signs`: set if this is a signed value. It is the name that the signature covers. */
  | { readonly kind: "struct"; readonly fields: Named; readonly signs?: string }
  | { readonly kind: "variants"; readonly variants: Named }
  | { readonly kind: "evolving"; readonly variants: Named };

/** The shapes of a union of `{ type: … }` variants: the other fields of each type. */
export type Shapes<U extends { type: string }> = {
  readonly [K in U["type"]]: Fields<Omit<Extract<U, { type: K }>, "type">>;
};
type Fields<T> = { readonly [F in keyof T]-?: Shape<T[F]> };

/** An integer from 0 to 2^53 − 1. Node ids, counters and clocks are naturals. */
export const natural: Shape<number> = { kind: "natural" };
/** Any finite number. */
export const real: Shape<number> = { kind: "real" };
/** True or false. */
export const boolean: Shape<boolean> = { kind: "boolean" };
/** A string of at most `maxBytes` bytes of UTF-8. */
export const text = (maxBytes: number): Shape<string> => ({ kind: "text", maxBytes });
/** A chunk of at most `maxBytes` bytes. */
export const chunk = (maxBytes: number): Shape<Chunk> => ({ kind: "chunk", maxBytes });
/** One of a fixed set of strings. */
export const oneOf = <const S extends string>(...values: S[]): Shape<S> => ({
  kind: "oneOf",
  values,
});
/** An array of at most `maxItems` items. */
export const list = <T>(items: Shape<T>, maxItems: number): Shape<T[]> => ({
  kind: "list",
  items,
  maxItems,
});
/** A value for each of at most `maxNodes` nodes, keyed by node id. */
export const perNode = <T>(value: Shape<T>, maxNodes: number): Shape<PerNode<T>> => ({
  kind: "perNode",
  value,
  maxNodes,
});
/** Null or a value of the given shape. */
export const nullable = <T>(value: Shape<T>): Shape<T | null> => ({ kind: "nullable", value });
/** An object with exactly these fields. */
export const struct = <T extends object>(fields: Fields<T>): Shape<T> => ({ kind: "struct", fields });
/** One of several records, distinguished by `type`. */
export const variants = <U extends { type: string }>(shapes: Shapes<U>): Shape<U> => ({
  kind: "variants",
  variants: Object.fromEntries(
    Object.entries(shapes).map(([type, fields]) => [type, struct(fields as Fields<object>)]),
  ),
});

/** The `type` of a decoded record whose variant this release does not know. */
export const UNKNOWN_VARIANT = "unknown";
/**
 * Like `variants`, but each variant is independent. On the wire it is identified by a hash of its name and shape, and preceded
 * by its length. A receiver that does not know the variant reads `{ type: "unknown" }` and continues after it. So releases that
 * differ in one variant still understand each other's other variants.
 */
export const evolving = <U extends { type: string }>(
  shapes: Shapes<U>,
): Shape<U | { type: typeof UNKNOWN_VARIANT }> => ({
  kind: "evolving",
  variants: (variants(shapes) as { readonly variants: Named }).variants,
});

/** Describes why `value` does not have the shape, in one sentence that names the field. Null if the value has the shape. */
export const problem = (shape: ShapeNode, value: unknown, path: string): string | null =>
  hasShape(shape, value) ? null : problemAt(path, shape, value);

/** Returns whether `value` has the shape. Cheaper than `problem`, as it builds no path and no sentence. */
export const hasShape = (shape: ShapeNode, value: unknown): boolean => problemAt("", shape, value) === null;

/** With an empty path the message is not needed, so it is not built. */
const not = (path: string, wanted: string, value: unknown): string => path && unexpected(path, wanted, value);

function problemAt(path: string, shape: ShapeNode, value: unknown): string | null {
  switch (shape.kind) {
    case "natural":
      return Number.isSafeInteger(value) && (value as number) >= 0 ? null : not(path, "a natural number", value);
    case "real":
      return Number.isFinite(value) ? null : not(path, "a finite number", value);
    case "boolean":
      return typeof value === "boolean" ? null : not(path, "true or false", value);
    case "text":
      return fits(value, shape.maxBytes) ? null : not(path, `text of at most ${shape.maxBytes} bytes`, value);
    case "chunk":
      return value instanceof Chunk && value.length <= shape.maxBytes
        ? null
        : not(path, `a chunk of at most ${shape.maxBytes} bytes`, value);
    case "oneOf":
      return shape.values.includes(value as string) ? null : not(path, `one of ${shape.values.join(", ")}`, value);
    case "nullable":
      return value === null ? null : problemAt(path, shape.value, value);
    case "list":
      if (!Array.isArray(value) || value.length > shape.maxItems)
        return not(path, `a list of at most ${shape.maxItems}`, value);
      return itemProblem(path, shape.items, value);
    case "perNode":
      if (!isRecord(value) || Object.keys(value).length > shape.maxNodes || !Object.keys(value).every(isNodeId))
        return not(path, `an object with a key for each of at most ${shape.maxNodes} nodes`, value);
      return eachProblem(path, shape.value, value);
    case "struct":
      return recordProblem(path, shape.fields, value, null);
    case "evolving":
      return isUnknown(value) ? null : variantProblem(path, shape.variants, value);
    case "variants":
      return variantProblem(path, shape.variants, value);
  }
}

type Named = Readonly<Record<string, ShapeNode>>;

function variantProblem(path: string, known: Named, value: unknown): string | null {
  if (!isRecord(value)) return not(path, "an object with a type", value);
  const variant = typeof value.type === "string" && Object.hasOwn(known, value.type) ? known[value.type] : undefined;
  if (variant?.kind === "struct") return recordProblem(path, variant.fields, value, "type");
  const names = Object.keys(known).join(", ");
  return not(path && `${path}.type`, names === "" ? "absent: none is accepted" : `one of ${names}`, value.type);
}

function recordProblem(path: string, fields: Named, value: unknown, beside: string | null): string | null {
  if (!isRecord(value)) return not(path, "an object", value);
  for (const key in value)
    if (key !== beside && !Object.hasOwn(fields, key)) return not(path && `${path}.${key}`, "absent", value[key]);
  for (const key in fields) {
    const wrong = problemAt(path && `${path}.${key}`, fields[key] as ShapeNode, value[key]);
    if (wrong !== null) return wrong;
  }
  return null;
}

// Top-level functions, because inside `problemAt` their closures would allocate on every call, used or not.
const itemProblem = (path: string, items: ShapeNode, value: readonly unknown[]): string | null =>
  first(value.map((item, at) => problemAt(path && `${path}[${at}]`, items, item)));
const eachProblem = (path: string, each: ShapeNode, value: Record<string, unknown>): string | null =>
  first(Object.entries(value).map(([node, item]) => problemAt(path && `${path}.${node}`, each, item)));

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isUnknown = (value: unknown): boolean =>
  isRecord(value) && value.type === UNKNOWN_VARIANT && Object.keys(value).length === 1;

const first = (problems: readonly (string | null)[]): string | null => problems.find((each) => each !== null) ?? null;

/** A UTF-16 unit takes one to three bytes of UTF-8, so most strings need not be counted. */
const fits = (value: unknown, maxBytes: number): boolean =>
  typeof value === "string" &&
  (value.length * 3 <= maxBytes || (value.length <= maxBytes && utf8Bytes(value) <= maxBytes));
function utf8Bytes(value: string): number {
  let bytes = 0;
  for (const character of value) {
    const point = character.codePointAt(0) as number;
    bytes += point < 0x80 ? 1 : point < 0x8_00 ? 2 : point < 0x1_00_00 ? 3 : 4;
  }
  return bytes;
}
