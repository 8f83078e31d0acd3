/**
 * Shapes say at run time what TypeScript says at compile time: which fields a message, a command or a journal record
 * has. They are data, so that one declaration serves every use: `problem` refuses what an outsider hands in, and the
 * wire codec is derived from the same shape, so bytes that decode are of the right shape by construction.
 */
import { UsageError, unexpected } from "./errors.ts";

/** The phantom `T` ties a shape to the TypeScript type it stands for. */
export type Shape<T> = ShapeNode & { readonly of?: T };

/** `text` and `list` are bounded, so nothing an outsider sends can grow without a limit. */
export type ShapeNode =
  | { readonly kind: "natural" | "real" | "boolean" }
  | { readonly kind: "text"; readonly maxBytes: number }
  | { readonly kind: "oneOf"; readonly values: readonly string[] }
  | { readonly kind: "list"; readonly items: ShapeNode; readonly maxItems: number }
  | { readonly kind: "nullable"; readonly value: ShapeNode }
  | { readonly kind: "table"; readonly value: ShapeNode }
  | { readonly kind: "struct"; readonly fields: Readonly<Record<string, ShapeNode>> }
  | { readonly kind: "variants"; readonly variants: Readonly<Record<string, ShapeNode>> };

/** The shapes of a union of `{ type: … }` variants: for every type, its other fields. */
export type Shapes<U extends { type: string }> = {
  readonly [K in U["type"]]: Fields<Omit<Extract<U, { type: K }>, "type">>;
};
type Fields<T> = { readonly [F in keyof T]-?: Shape<T[F]> };

/** 0, 1, 2 … 2^53 − 1. Node ids, counters and clocks are naturals. */
export const natural: Shape<number> = { kind: "natural" };
/** Any finite number. */
export const real: Shape<number> = { kind: "real" };
export const boolean: Shape<boolean> = { kind: "boolean" };
/** A string of at most `maxBytes` bytes of UTF-8. */
export const text = (maxBytes: number): Shape<string> => ({ kind: "text", maxBytes });
export const oneOf = <const S extends string>(...values: S[]): Shape<S> => ({ kind: "oneOf", values });
export const list = <T>(items: Shape<T>, maxItems: number): Shape<T[]> => ({ kind: "list", items, maxItems });
export const nullable = <T>(value: Shape<T>): Shape<T | null> => ({ kind: "nullable", value });
/** Values by node id. For options and commands; it does not go over the wire. */
export const table = <T>(value: Shape<T>): Shape<Readonly<Record<number, T>>> => ({ kind: "table", value });
export const struct = <T extends object>(fields: Fields<T>): Shape<T> => ({
  kind: "struct",
  fields: fields as Record<string, ShapeNode>,
});
/** One of several records told apart by `type`. */
export const variants = <U extends { type: string }>(shapes: Shapes<U>): Shape<U> => ({
  kind: "variants",
  variants: Object.fromEntries(
    Object.entries(shapes).map(([type, fields]) => [type, struct(fields as Fields<object>)]),
  ),
});

/** What is wrong with `value`, in one sentence that names the field, or null if it has the shape. */
export function problem(shape: ShapeNode, value: unknown, path: string): string | null {
  switch (shape.kind) {
    case "natural":
      return Number.isSafeInteger(value) && (value as number) >= 0 ? null : unexpected(path, "a natural number", value);
    case "real":
      return Number.isFinite(value) ? null : unexpected(path, "a finite number", value);
    case "boolean":
      return typeof value === "boolean" ? null : unexpected(path, "true or false", value);
    case "text":
      return typeof value === "string" && value.length <= shape.maxBytes && utf8Bytes(value) <= shape.maxBytes
        ? null
        : unexpected(path, `text of at most ${shape.maxBytes} bytes`, value);
    case "oneOf":
      return shape.values.includes(value as string) ? null : unexpected(path, `one of ${shape.values.join(", ")}`, value);
    case "nullable":
      return value === null ? null : problem(shape.value, value, path);
    case "list":
      if (!Array.isArray(value) || value.length > shape.maxItems)
        return unexpected(path, `a list of at most ${shape.maxItems}`, value);
      return first(value, (item, index) => problem(shape.items, item, `${path}[${index}]`));
    case "table":
      if (!isRecord(value)) return unexpected(path, "an object", value);
      return first(Object.entries(value), ([key, item]) =>
        /^(0|[1-9]\d*)$/.test(key) ? problem(shape.value, item, `${path}.${key}`) : unexpected(`a key of ${path}`, "a node id", key),
      );
    case "struct":
      return recordProblem(shape.fields, value, path, []);
    case "variants":
      return variantProblem(shape.variants, value, path);
  }
}

function variantProblem(known: Readonly<Record<string, ShapeNode>>, value: unknown, path: string): string | null {
  if (!isRecord(value)) return unexpected(path, "an object with a type", value);
  const { type } = value;
  const variant = typeof type === "string" && Object.hasOwn(known, type) ? known[type] : undefined;
  if (variant?.kind !== "struct") {
    const names = Object.keys(known).join(", ");
    return unexpected(`${path}.type`, names === "" ? "absent: none is accepted" : `one of ${names}`, type);
  }
  return recordProblem(variant.fields, value, path, ["type"]);
}

function recordProblem(
  fields: Readonly<Record<string, ShapeNode>>,
  value: unknown,
  path: string,
  besides: readonly string[],
): string | null {
  if (!isRecord(value)) return unexpected(path, "an object", value);
  const stray = Object.keys(value).find((key) => !Object.hasOwn(fields, key) && !besides.includes(key));
  if (stray !== undefined) return unexpected(`${path}.${stray}`, "absent", value[stray]);
  return first(Object.entries(fields), ([key, field]) => problem(field, value[key], `${path}.${key}`));
}

/** Settles a protocol's options: the defaults, overridden by what was given, every unknown word or wrong kind refused. */
export function settle<O extends object>(defaults: O, shape: Shape<O>, given: Partial<O> | undefined, owner: string): O {
  const settled = { ...defaults, ...given };
  const wrong = problem(shape, settled, owner);
  if (wrong !== null) throw new UsageError("bad-option", wrong);
  return settled;
}

/** Refuses a duration or count that is not above zero. */
export function requirePositive(name: string, value: number): void {
  if (!(Number.isFinite(value) && value > 0))
    throw new UsageError("bad-option", unexpected(name, "a finite number > 0", value));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function first<T>(items: readonly T[], find: (item: T, index: number) => string | null): string | null {
  for (const [index, item] of items.entries()) {
    const found = find(item, index);
    if (found !== null) return found;
  }
  return null;
}

function utf8Bytes(value: string): number {
  let bytes = 0;
  for (const character of value) {
    const point = character.codePointAt(0) ?? 0;
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  }
  return bytes;
}
