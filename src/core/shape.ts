/**
 * Shapes describe at run time what TypeScript describes at compile time: the fields of a message, a command or a
 * journal record. They are data, so one declaration has several uses. `problem` validates outside input, and the wire
 * codec is derived from the same shape, so everything that the codec decodes has the right shape by construction.
 */
import { Chunk } from "./chunk.ts";
import { unexpected } from "./errors.ts";
import { isNodeId, type PerNode } from "./per-node.ts";

/** A shape. The phantom `T` is the TypeScript type of its values. */
export type Shape<T> = ShapeNode & { readonly of?: T };

/**
 * The untyped form of a shape. `text`, `chunk` and `list` are bounded, so that outside input cannot grow without limit.
 */
export type ShapeNode =
  | { readonly kind: "natural" | "real" | "boolean" }
  | { readonly kind: "text" | "chunk"; readonly maxBytes: number }
  | { readonly kind: "oneOf"; readonly values: readonly string[] }
  | { readonly kind: "list"; readonly items: ShapeNode; readonly maxItems: number }
  | { readonly kind: "perNode"; readonly value: ShapeNode; readonly maxNodes: number }
  | { readonly kind: "nullable"; readonly value: ShapeNode }
  /**
   * An object with exactly these fields. `signs` is set only for a signed value and contains the name that the
   * signature covers.
   */
  | { readonly kind: "struct"; readonly fields: Named; readonly signs?: string }
  /** An object with a `type`, which determines its other fields. */
  | { readonly kind: "variants"; readonly variants: Named }
  | { readonly kind: "evolving"; readonly variants: Named };

/** The shapes of a union of `{ type: … }` variants: for each type, the shapes of its other fields. */
export type Shapes<U extends { type: string }> = {
  readonly [K in U["type"]]: Fields<Omit<Extract<U, { type: K }>, "type">>;
};
type Fields<T> = { readonly [F in keyof T]-?: Shape<T[F]> };

/** The shape of an integer from 0 to 2^53 − 1. Node ids, counters and clocks are naturals. */
export const natural: Shape<number> = { kind: "natural" };
/** The shape of a finite number. */
export const real: Shape<number> = { kind: "real" };
/** The shape of true and false. */
export const boolean: Shape<boolean> = { kind: "boolean" };
/** Returns the shape of a string of at most `maxBytes` bytes of UTF-8. */
export const text = (maxBytes: number): Shape<string> => ({ kind: "text", maxBytes });
/** Returns the shape of a chunk of at most `maxBytes` bytes. */
export const chunk = (maxBytes: number): Shape<Chunk> => ({ kind: "chunk", maxBytes });
/** Returns the shape of a string from a fixed set. */
export const oneOf = <const S extends string>(...values: S[]): Shape<S> => ({
  kind: "oneOf",
  values,
});
/** Returns the shape of an array of at most `maxItems` items. */
export const list = <T>(items: Shape<T>, maxItems: number): Shape<T[]> => ({
  kind: "list",
  items,
  maxItems,
});
/** Returns the shape of a map from at most `maxNodes` nodes to values, keyed by node id. */
export const perNode = <T>(value: Shape<T>, maxNodes: number): Shape<PerNode<T>> => ({
  kind: "perNode",
  value,
  maxNodes,
});
/** Returns the shape of a value that is null or has the given shape. */
export const nullable = <T>(value: Shape<T>): Shape<T | null> => ({ kind: "nullable", value });
/** Returns the shape of an object with exactly these fields. */
export const struct = <T extends object>(fields: Fields<T>): Shape<T> => ({ kind: "struct", fields });
/** Returns the shape of one of several records, distinguished by `type`. */
export const variants = <U extends { type: string }>(shapes: Shapes<U>): Shape<U> => ({
  kind: "variants",
  variants: Object.fromEntries(
    Object.entries(shapes).map(([type, fields]) => [type, struct(fields as Fields<object>)]),
  ),
});

/** The `type` of a decoded record whose variant this release does not know. */
export const UNKNOWN_VARIANT = "unknown";
/**
 * Returns a shape like `variants`, but each variant is independent. On the wire, a variant is identified by a hash of
 * its name and shape and is preceded by its length. A receiver that does not know the variant decodes it as
 * `{ type: "unknown" }` and continues after it. So releases that differ in one variant can still exchange all the
 * others.
 */
export const evolving = <U extends { type: string }>(
  shapes: Shapes<U>,
): Shape<U | { type: typeof UNKNOWN_VARIANT }> => ({
  kind: "evolving",
  variants: (variants(shapes) as { readonly variants: Named }).variants,
});

/** Returns a sentence that names the field and explains why `value` does not have the shape. Null if it does. */
export const problem = (shape: ShapeNode, value: unknown, path: string): string | null =>
  hasShape(shape, value) ? null : problemAt(path, shape, value);

/**
 * Returns whether `value` has the shape. It is cheaper than `problem` because it builds neither a path nor a sentence.
 */
export const hasShape = (shape: ShapeNode, value: unknown): boolean => problemAt("", shape, value) === null;

/** Describes a mismatch. An empty path means that the caller does not need the description, so it is not built. */
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
        return not(path, `a list of at most ${shape.maxItems} items`, value);
      return itemProblem(path, shape.items, value);
    case "perNode":
      if (!isRecord(value) || Object.keys(value).length > shape.maxNodes || !Object.keys(value).every(isNodeId))
        return not(path, `an object keyed by node id, with at most ${shape.maxNodes} nodes`, value);
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
  return not(path && `${path}.type`, names === "" ? "absent (no type is accepted)" : `one of ${names}`, value.type);
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

// These functions are at the top level because closures inside `problemAt` would be allocated on every call, even if
// unused.
const itemProblem = (path: string, items: ShapeNode, value: readonly unknown[]): string | null =>
  first(value.map((item, at) => problemAt(path && `${path}[${at}]`, items, item)));
const eachProblem = (path: string, each: ShapeNode, value: Record<string, unknown>): string | null =>
  first(Object.entries(value).map(([node, item]) => problemAt(path && `${path}.${node}`, each, item)));

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isUnknown = (value: unknown): boolean =>
  isRecord(value) && value.type === UNKNOWN_VARIANT && Object.keys(value).length === 1;

const first = (problems: readonly (string | null)[]): string | null => problems.find((each) => each !== null) ?? null;

/**
 * Returns whether a value is a string within the limit. A UTF-16 code unit takes at most three bytes in UTF-8, so the
 * bytes of most strings need not be counted.
 */
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
