/**
 * Generates the messages that a Byzantine node may send in place of the correct one: messages that it has seen, and the
 * correct message with one value changed. The changed values come from seen messages and from the shape, so every false
 * message is well-formed and the number of choices is finite. A Byzantine node can re-sign its own values and reuse
 * signed values that it has seen, but it cannot forge another node's signature.
 */
import { entriesIn, type PerNode } from "../core/per-node.ts";
import { canonical } from "../core/plain.ts";
import type { Tagged } from "../core/protocol.ts";
import { problem, type ShapeNode } from "../core/shape.ts";
import { type Signed, type Signer, sign } from "../core/signatures.ts";

/** The maximum number of false messages. Any others are dropped. */
const MAX_LIES = 64;
/** The maximum number of previously seen numbers or strings to try for each value. */
const MAX_TRIED = 4;

/**
 * Seen values, grouped by kind and keyed by their canonical text. Values signed for the same purpose have the same
 * kind.
 */
type Seen = Map<string | ShapeNode, Map<string, unknown>>;

/**
 * Returns alternatives to a message.
 * @param shape the shape that covers all messages
 * @param seen the messages that the node has seen
 */
export function liesAbout(message: Tagged, shape: ShapeNode, seen: readonly Tagged[], ctx: Signer): Tagged[] {
  const pool: Seen = new Map();
  for (const each of [...seen, message]) gather(each, shape, pool);
  return distinct(message, shape, [seen, changes(message, shape, pool, ctx) as Iterable<Tagged>]);
}

/**
 * Returns variations of the message, each with one value changed: a number off by one, a flag flipped, or an entry
 * omitted or duplicated. Does not use seen messages.
 */
export function variationsOf(message: Tagged, shape: ShapeNode, ctx: Signer): Tagged[] {
  return distinct(message, shape, [changes(message, shape, new Map(), ctx) as Iterable<Tagged>]);
}

/** Returns the first `MAX_LIES` distinct messages that match the shape, excluding the correct message. */
function distinct(message: Tagged, shape: ShapeNode, sources: readonly Iterable<Tagged>[]): Tagged[] {
  const lies = new Map<string, Tagged>();
  const truth = canonical(message);
  for (const source of sources)
    for (const lie of source) {
      if (lies.size === MAX_LIES) return [...lies.values()];
      if (problem(shape, lie, "lie") !== null) continue;
      const text = canonical(lie);
      if (text !== truth) lies.set(text, lie);
    }
  return [...lies.values()];
}

type Struct = Extract<ShapeNode, { kind: "struct" }>;
type Fields = Record<string, unknown>;

/** Returns the struct that describes a union value, if the value's type is known. */
function variantOf(value: unknown, shape: Extract<ShapeNode, { kind: "variants" | "evolving" }>): Struct | null {
  const variant = shape.variants[(value as Tagged).type];
  return variant?.kind === "struct" ? variant : null;
}

/** Returns the shape's key in the pool of seen values. Values with equal keys can replace each other. */
function keyOf(shape: ShapeNode): string | ShapeNode {
  if (shape.kind === "nullable") return keyOf(shape.value);
  if (shape.kind === "struct") return shape.signs === undefined ? shape : `signed ${shape.signs}`;
  return shape.kind === "natural" || shape.kind === "real" || shape.kind === "text" ? shape.kind : shape;
}

function gather(value: unknown, shape: ShapeNode, pool: Seen): void {
  const keep = (): void => {
    const key = keyOf(shape);
    const known = pool.get(key) ?? new Map<string, unknown>();
    const text = canonical(value);
    if (!known.has(text)) known.set(text, value);
    pool.set(key, known);
  };
  switch (shape.kind) {
    case "natural":
    case "text":
      return keep();
    case "nullable":
      return value === null ? undefined : gather(value, shape.value, pool);
    case "perNode":
      for (const [, each] of entriesIn(value as PerNode<unknown>)) gather(each, shape.value, pool);
      return;
    case "list":
      for (const item of value as unknown[]) gather(item, shape.items, pool);
      return;
    case "struct":
      keep();
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

/** Lazily yields alternatives to the value, each with one change. */
function* changes(value: unknown, shape: ShapeNode, pool: Seen, ctx: Signer): Iterable<unknown> {
  switch (shape.kind) {
    case "natural":
    case "real": {
      const number = value as number;
      yield* tried(pool, shape, value);
      yield number + 1;
      if (number >= 1) yield number - 1;
      return;
    }
    case "text":
    case "chunk":
      return yield* tried(pool, shape, value);
    case "boolean":
      return yield value !== true;
    case "oneOf":
      return yield* shape.values.filter((other) => other !== value);
    case "nullable":
      if (value === null) return yield* tried(pool, shape, null);
      yield null;
      return yield* changes(value, shape.value, pool, ctx);
    case "list":
      return yield* changedItems(value as unknown[], shape, pool, ctx);
    case "perNode": {
      const map = value as PerNode<unknown>;
      for (const [node, each] of entriesIn(map)) {
        const { [node]: _left, ...without } = map;
        yield without;
        for (const other of changes(each, shape.value, pool, ctx)) yield { ...map, [node]: other };
      }
      return;
    }
    case "struct":
      return yield* shape.signs === undefined
        ? changedFields(value, shape, pool, ctx)
        : resigned(value, shape, pool, ctx);
    case "variants":
    case "evolving": {
      const variant = variantOf(value, shape);
      if (variant !== null) yield* changedFields(value, variant, pool, ctx);
    }
  }
}

/**
 * Yields copies of the list with one item removed, changed or duplicated, or with an item added that was seen in such a
 * list.
 */
function* changedItems(
  items: readonly unknown[],
  shape: Extract<ShapeNode, { kind: "list" }>,
  pool: Seen,
  ctx: Signer,
): Iterable<unknown> {
  for (const at of items.keys()) yield items.toSpliced(at, 1);
  for (const [at, item] of items.entries())
    for (const other of changes(item, shape.items, pool, ctx)) yield items.with(at, other);
  const last = items.at(-1);
  if (items.length > 0) yield [...items, last];
  for (const more of tried(pool, shape.items, last)) yield [...items, more];
}

const tried = (pool: Seen, shape: ShapeNode, value: unknown): unknown[] =>
  [...(pool.get(keyOf(shape))?.values() ?? [])].filter((other) => other !== value).slice(-MAX_TRIED);

function* changedFields(value: unknown, { fields }: Struct, pool: Seen, ctx: Signer): Iterable<unknown> {
  for (const [name, field] of Object.entries(fields))
    for (const other of changes((value as Fields)[name], field, pool, ctx))
      yield { ...(value as object), [name]: other };
}

/**
 * Yields signed values that the node has seen, then the correct value and its alternatives, signed by the node itself.
 */
function* resigned(value: unknown, shape: Struct, pool: Seen, ctx: Signer): Iterable<unknown> {
  const inner = shape.fields.value as ShapeNode;
  const { value: truth } = value as Signed<unknown>;
  yield* pool.get(keyOf(shape))?.values() ?? [];
  yield sign(ctx, shape as never, truth);
  for (const other of changes(truth, inner, pool, ctx))
    if (problem(inner, other, "") === null) yield sign(ctx, shape as never, other);
}
