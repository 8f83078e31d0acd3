/**
 * What a lying node may say in the place of a message: messages that it has seen, and the message with one of its values
 * changed. Values come from what it has seen and from the shape, so a lie is always a message of the protocol, and there
 * are finitely many. A signed value is its own to make anew, or one that it has seen: it cannot sign as another.
 */
import { entriesIn, type PerNode } from "../core/per-node.ts";
import { canonical } from "../core/plain.ts";
import type { Tagged } from "../core/protocol.ts";
import { problem, type ShapeNode } from "../core/shape.ts";
import { type Signed, type Signer, sign } from "../core/signatures.ts";

/** More than these are left out, the last first. */
const MAX_LIES = 64;
/** Of numbers and of texts that were seen, as many of each are tried in a place. */
const MAX_TRIED = 4;

/** Values by the kind of their place: of a signed value by what it is signed as. */
type Seen = ReadonlyMap<string, readonly unknown[]>;

/** @param shape of all messages @param seen the messages that it knows */
export function liesAbout(message: Tagged, shape: ShapeNode, seen: readonly Tagged[], ctx: Signer): Tagged[] {
  const pool = new Map<string, unknown[]>();
  for (const each of [...seen, message]) gather(each, shape, pool);
  const changed = changes(message, shape, pool, ctx);
  const lies = new Map([...seen, ...(changed as Tagged[])].map((lie) => [canonical(lie), lie]));
  lies.delete(canonical(message));
  return [...lies.values()].filter((lie) => problem(shape, lie, "lie") === null).slice(0, MAX_LIES);
}

type Struct = Extract<ShapeNode, { kind: "struct" }>;
type Fields = Record<string, unknown>;

/** The struct that a value of a union is, if its type is known. */
function variantOf(value: unknown, shape: Extract<ShapeNode, { kind: "variants" | "evolving" }>): Struct | null {
  const variant = shape.variants[(value as Tagged).type];
  return variant?.kind === "struct" ? variant : null;
}

function gather(value: unknown, shape: ShapeNode, pool: Map<string, unknown[]>): void {
  const keep = (kind: string): void => {
    const known = pool.get(kind) ?? [];
    if (!known.some((other) => canonical(other) === canonical(value))) known.push(value);
    pool.set(kind, known);
  };
  switch (shape.kind) {
    case "natural":
    case "text":
      return keep(shape.kind);
    case "nullable":
      return value === null ? undefined : gather(value, shape.value, pool);
    case "perNode":
      for (const [, each] of entriesIn(value as PerNode<unknown>)) gather(each, shape.value, pool);
      return;
    case "list":
      for (const item of value as unknown[]) gather(item, shape.items, pool);
      return;
    case "struct":
      if (shape.signs !== undefined) keep(`signed ${shape.signs}`);
      for (const [name, field] of Object.entries(shape.fields)) gather((value as Fields)[name], field, pool);
      return;
    case "variants":
    case "evolving": {
      const variant = variantOf(value, shape);
      return variant === null ? undefined : gather(value, variant, pool);
    }
    default:
      return;
  }
}

/** The value with one change in it, in all ways. */
function changes(value: unknown, shape: ShapeNode, pool: Seen, ctx: Signer): unknown[] {
  switch (shape.kind) {
    case "natural":
    case "real": {
      const number = value as number;
      return [...tried(pool, shape.kind, value), number + 1, ...(number >= 1 ? [number - 1] : [])];
    }
    case "text":
      return tried(pool, "text", value);
    case "boolean":
      return [value !== true];
    case "oneOf":
      return shape.values.filter((other) => other !== value);
    case "nullable":
      return value === null ? tried(pool, shape.value.kind, null) : [null, ...changes(value, shape.value, pool, ctx)];
    case "list": {
      const items = value as unknown[];
      const without = items.map((_item, at) => items.toSpliced(at, 1));
      return [
        ...without,
        ...items.flatMap((item, at) => changes(item, shape.items, pool, ctx).map((other) => items.with(at, other))),
      ];
    }
    case "perNode": {
      const map = value as PerNode<unknown>;
      return entriesIn(map).flatMap(([node, each]) => {
        const { [node]: _left, ...without } = map;
        return [without, ...changes(each, shape.value, pool, ctx).map((other) => ({ ...map, [node]: other }))];
      });
    }
    case "struct":
      return shape.signs === undefined ? changedFields(value, shape, pool, ctx) : resigned(value, shape, pool, ctx);
    case "variants":
    case "evolving": {
      const variant = variantOf(value, shape);
      return variant === null ? [] : changedFields(value, variant, pool, ctx);
    }
  }
}

const tried = (pool: Seen, kind: string, value: unknown): unknown[] =>
  (pool.get(kind) ?? []).filter((other) => other !== value).slice(-MAX_TRIED);

const changedFields = (value: unknown, { fields }: Struct, pool: Seen, ctx: Signer): unknown[] =>
  Object.entries(fields).flatMap(([name, field]) =>
    changes((value as Fields)[name], field, pool, ctx).map((other) => ({ ...(value as object), [name]: other })),
  );

/** What others have signed, and anything that it signs itself. */
function resigned(value: unknown, shape: Struct, pool: Seen, ctx: Signer): unknown[] {
  const inner = shape.fields.value as ShapeNode;
  const changed = changes((value as Signed<unknown>).value, inner, pool, ctx);
  const own = [(value as Signed<unknown>).value, ...changed.filter((each) => problem(inner, each, "") === null)];
  return [...(pool.get(`signed ${shape.signs}`) ?? []), ...own.map((each) => sign(ctx, shape as never, each))];
}
