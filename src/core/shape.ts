/**
 * Shapes say at run time what TypeScript says at compile time: which fields a message, a command or a journal record
 * has. They are data, so that one declaration serves every use: `problem` refuses what an outsider hands in, and the
 * wire codec is derived from the same shape, so bytes that decode are of the right shape by construction.
 */
import { unexpected } from "./errors.ts";
import { isNodeId, type PerNode } from "./per-node.ts";

/** The phantom `T` ties a shape to the TypeScript type it stands for. */
export type Shape<T> = ShapeNode & { readonly of?: T };

/** `text` and `list` are bounded, so nothing an outsider sends can grow without a limit. */
export type ShapeNode =
  | { readonly kind: "natural" | "real" | "boolean" }
  | { readonly kind: "text"; readonly maxBytes: number }
  | { readonly kind: "oneOf"; readonly values: readonly string[] }
  | { readonly kind: "list"; readonly items: ShapeNode; readonly maxItems: number }
  | { readonly kind: "perNode"; readonly value: ShapeNode; readonly maxNodes: number }
  | { readonly kind: "nullable"; readonly value: ShapeNode }
  /** `signs`: it is a signed value, and the name under which it is signed. */
  | { readonly kind: "struct"; readonly fields: Named; readonly signs?: string }
  | { readonly kind: "variants"; readonly variants: Named }
  | { readonly kind: "evolving"; readonly variants: Named };

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
export const oneOf = <const S extends string>(...values: S[]): Shape<S> => ({
  kind: "oneOf",
  values,
});
export const list = <T>(items: Shape<T>, maxItems: number): Shape<T[]> => ({
  kind: "list",
  items,
  maxItems,
});
/** Something for each of some nodes, at most `maxNodes`, by their ids. */
export const perNode = <T>(value: Shape<T>, maxNodes: number): Shape<PerNode<T>> => ({
  kind: "perNode",
  value,
  maxNodes,
});
export const nullable = <T>(value: Shape<T>): Shape<T | null> => ({ kind: "nullable", value });
export const struct = <T extends object>(fields: Fields<T>): Shape<T> => ({ kind: "struct", fields });
/** One of several records told apart by `type`. */
export const variants = <U extends { type: string }>(shapes: Shapes<U>): Shape<U> => ({
  kind: "variants",
  variants: Object.fromEntries(
    Object.entries(shapes).map(([type, fields]) => [type, struct(fields as Fields<object>)]),
  ),
});

/** What a reader gets of a record that was written by a release with other variants. */
export const UNKNOWN_VARIANT = "unknown";
/**
 * Like `variants`, and each stands by itself: on the wire it is told apart by a hash of its name and its shape, and is
 * preceded by its length. Who does not know it reads `{ type: "unknown" }` and what follows it all the same, so that
 * releases that differ in one variant still understand each other in the others.
 */
export const evolving = <U extends { type: string }>(
  shapes: Shapes<U>,
): Shape<U | { type: typeof UNKNOWN_VARIANT }> => ({
  kind: "evolving",
  variants: (variants(shapes) as { readonly variants: Named }).variants,
});

/** Whether `value` has the shape. Values come far more often than mistakes in them, so this builds no sentence. */
export function hasShape(shape: ShapeNode, value: unknown): boolean {
  switch (shape.kind) {
    case "natural":
      return Number.isSafeInteger(value) && (value as number) >= 0;
    case "real":
      return Number.isFinite(value);
    case "boolean":
      return typeof value === "boolean";
    case "text":
      return typeof value === "string" && fits(value, shape.maxBytes);
    case "oneOf":
      return shape.values.includes(value as string);
    case "nullable":
      return value === null || hasShape(shape.value, value);
    case "list":
      return isList(shape.maxItems, value) && value.every((item) => hasShape(shape.items, item));
    case "perNode":
      return isPerNode(shape.maxNodes, value) && Object.values(value).every((each) => hasShape(shape.value, each));
    case "struct":
      return hasFields(shape.fields, value, 0);
    case "evolving":
      return isUnknown(value) || isVariant(shape.variants, value);
    case "variants":
      return isVariant(shape.variants, value);
  }
}

type Named = Readonly<Record<string, ShapeNode>>;

function variantOf(known: Named, value: Record<string, unknown>): Named | null {
  const { type } = value;
  const variant = typeof type === "string" && Object.hasOwn(known, type) ? known[type] : undefined;
  return variant?.kind === "struct" ? variant.fields : null;
}

function isVariant(known: Named, value: unknown): boolean {
  const fields = isRecord(value) ? variantOf(known, value) : null;
  return fields !== null && hasFields(fields, value, 1);
}

/** All of these fields, and so many others: the type of a variant. */
function hasFields(fields: Named, value: unknown, others: number): boolean {
  if (!isRecord(value)) return false;
  let missing = others;
  for (const key in fields) {
    if (!hasShape(fields[key] as ShapeNode, value[key])) return false;
    missing += 1;
  }
  for (const _key in value) missing -= 1;
  return missing === 0;
}

const isList = (maxItems: number, value: unknown): value is unknown[] =>
  Array.isArray(value) && value.length <= maxItems;
const isPerNode = (maxNodes: number, value: unknown): value is Record<string, unknown> =>
  isRecord(value) && Object.keys(value).length <= maxNodes && Object.keys(value).every(isNodeId);

/** What is wrong with `value`, in one sentence that names the field, or null if it has the shape. */
export function problem(shape: ShapeNode, value: unknown, path: string): string | null {
  if (hasShape(shape, value)) return null;
  switch (shape.kind) {
    case "natural":
      return unexpected(path, "a natural number", value);
    case "real":
      return unexpected(path, "a finite number", value);
    case "boolean":
      return unexpected(path, "true or false", value);
    case "text":
      return unexpected(path, `text of at most ${shape.maxBytes} bytes`, value);
    case "oneOf":
      return unexpected(path, `one of ${shape.values.join(", ")}`, value);
    case "nullable":
      return problem(shape.value, value, path);
    case "list":
      if (!isList(shape.maxItems, value)) return unexpected(path, `a list of at most ${shape.maxItems}`, value);
      return first(value.map((item, index) => problem(shape.items, item, `${path}[${index}]`)));
    case "perNode":
      if (!isPerNode(shape.maxNodes, value))
        return unexpected(path, `an object with a key for each of at most ${shape.maxNodes} nodes`, value);
      return first(Object.entries(value).map(([node, each]) => problem(shape.value, each, `${path}.${node}`)));
    case "struct":
      return recordProblem(shape.fields, value, path, []);
    case "evolving":
    case "variants":
      return variantProblem(shape.variants, value, path);
  }
}

function variantProblem(known: Named, value: unknown, path: string): string | null {
  if (!isRecord(value)) return unexpected(path, "an object with a type", value);
  const fields = variantOf(known, value);
  if (fields === null) {
    const names = Object.keys(known).join(", ");
    return unexpected(`${path}.type`, names === "" ? "absent: none is accepted" : `one of ${names}`, value.type);
  }
  return recordProblem(fields, value, path, ["type"]);
}

function recordProblem(fields: Named, value: unknown, path: string, besides: readonly string[]): string | null {
  if (!isRecord(value)) return unexpected(path, "an object", value);
  const stray = Object.keys(value).find((key) => !Object.hasOwn(fields, key) && !besides.includes(key));
  if (stray !== undefined) return unexpected(`${path}.${stray}`, "absent", value[stray]);
  return first(Object.entries(fields).map(([key, field]) => problem(field, value[key], `${path}.${key}`)));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const isUnknown = (value: unknown): boolean =>
  isRecord(value) && value.type === UNKNOWN_VARIANT && Object.keys(value).length === 1;

const first = (problems: readonly (string | null)[]): string | null => problems.find((each) => each !== null) ?? null;

/** A unit of UTF-16 takes one to three bytes of UTF-8: most texts need not be counted. */
const fits = (value: string, maxBytes: number): boolean =>
  value.length * 3 <= maxBytes || (value.length <= maxBytes && utf8Bytes(value) <= maxBytes);
function utf8Bytes(value: string): number {
  let bytes = 0;
  for (let at = 0; at < value.length; at++) {
    const point = value.codePointAt(at) as number;
    bytes += point < 0x80 ? 1 : point < 0x8_00 ? 2 : point < 0x1_00_00 ? 3 : 4;
    if (point >= 0x1_00_00) at += 1; // A pair of surrogates.
  }
  return bytes;
}
