/**
 * Nodes that lie. A protocol in, a protocol out: some of its nodes still run the algorithm, but what they send is
 * changed on its way out, as their behaviour says and as `ctx.choose` picks. So every driver runs liars like anything
 * else. The properties of the result speak of the correct nodes alone.
 */
import { InvariantViolation, UsageError, unexpected } from "../core/errors.ts";
import { clone, equal } from "../core/plain.ts";
import type { Context, NodeId, Property, Protocol, StateOf, Tagged, Vocabulary, World } from "../core/protocol.ts";
import { type ShapeNode, variants } from "../core/shape.ts";
import { changedContext } from "./contexts.ts";
import { liesAbout } from "./lies.ts";

/** Behaviours that are plain data. */
export type NamedBehaviour = Exclude<ByzantineBehaviour, { lie: unknown }>;

export type ByzantineBehaviour =
  /** Sends nothing. */
  | "mute"
  /** Sends each receiver the message as it is, or with one of its numbers one higher or one lower. */
  | "equivocator"
  /** Sends what it should, and then may send the same receiver once more what it has sent anybody before. */
  | "replayer"
  /** May keep a message back, and send it when something has reached it later. */
  | "delayer"
  /** Says anything that `lies.ts` knows, or nothing, in the place of a message, and what it has seen whenever it pleases. */
  | "adversary"
  /** The same, at most so many times in each of its lives: then it is honest, and there are finitely many runs. */
  | { readonly lies: number }
  /** Sends `to` one of these instead; nothing if there are none. */
  | { readonly lie: (to: NodeId, message: Tagged) => readonly Tagged[] };

export const behaviours = ["mute", "equivocator", "replayer", "delayer", "adversary"] as const;

/** How many messages a liar remembers: its state stays bounded. */
const MEMORY = 4;

type Letter = { to: NodeId; message: Tagged };
/** What a Byzantine node's state has besides the algorithm's own: messages that it has sent, or keeps back. */
type Remembering = { byzantine?: Letter[]; adversary?: Adversary };
/** What it has seen, the last messages, and how often it may still lie; null: as often as it likes. */
type Adversary = { seen: Tagged[]; left: number | null };

// Inside, tables are walked by name and messages are whatever the protocol says; the signatures keep callers honest.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;
type Handler = (...args: Any[]) => void;

/** @throws UsageError for a behaviour that is none. */
export function byzantine<V extends Vocabulary>(
  protocol: Protocol<V>,
  liars: ReadonlyMap<NodeId, ByzantineBehaviour>,
): Protocol<V> {
  for (const [node, behaviour] of liars) {
    const { lie, lies } = behaviour as { lie?: unknown; lies?: unknown };
    const isOwn = typeof lie === "function" || (Number.isSafeInteger(lies) && (lies as number) >= 0);
    if (!isOwn && !behaviours.includes(behaviour as "mute"))
      throw new UsageError(
        "bad-behaviour",
        unexpected(`the behaviour of node ${node}`, `one of ${behaviours.join(", ")}, { lies } or { lie }`, behaviour),
      );
  }

  /** The same handler; at a liar, with a context that lies. State and context are its first and its last argument. */
  const wrap =
    (handler: Handler): Handler =>
    (...args) => {
      const ctx: Context<Any> = args.at(-1);
      const behaviour = liars.get(ctx.self);
      if (behaviour === undefined) return handler(...args);
      const lying = lyingContext(ctx, args[0], behaviour, shape);
      if (behaviour === "delayer") releaseOne(args[0], ctx);
      const { adversary } = args[0] as Remembering;
      if (adversary === undefined) return handler(...args.slice(0, -1), lying);
      if (args.length === 4) see(adversary, args[2]);
      sayMore(ctx, adversary);
      try {
        handler(...args.slice(0, -1), lying);
      } catch (error) {
        if (!(error instanceof InvariantViolation)) throw error; // What it has brought upon itself proves nothing.
      }
    };
  const wrapAll = (table: Record<string, Handler> | undefined): Record<string, Handler> | undefined =>
    table && Object.fromEntries(Object.entries(table).map(([name, handler]) => [name, wrap(handler)]));
  const shape = variants((protocol.shapes.message ?? {}) as Any);
  const { start, receive, timeout, command, ...rest } = protocol as Any;
  return {
    ...rest,
    ...(start && { start: wrap(start) }),
    ...(receive && { receive: wrapAll(receive) }),
    ...(timeout && { timeout: wrapAll(timeout) }),
    ...(command && { command: wrapAll(command) }),
    init(self: NodeId, peers: readonly NodeId[]) {
      const state = protocol.init(self, peers);
      const behaviour = liars.get(self);
      if (behaviour === "replayer" || behaviour === "delayer") return { ...state, byzantine: [] };
      if (behaviour === "adversary") return { ...state, adversary: { seen: [], left: null } };
      const isBounded = typeof behaviour === "object" && "lies" in behaviour;
      return isBounded ? { ...state, adversary: { seen: [], left: behaviour.lies } } : state;
    },
    properties: protocol.properties.map((property) => ofCorrectNodes(property, liars)),
  } as Protocol<V>;
}

/** A context whose messages are not what the handler says. */
function lyingContext(
  ctx: Context<Any>,
  state: Remembering,
  behaviour: ByzantineBehaviour,
  shape: ShapeNode,
): Context<Any> {
  const { adversary } = state;
  const send = (to: NodeId, message: Tagged): void =>
    adversary === undefined
      ? sendFalsely(ctx, state, behaviour, to, message)
      : sendAnything(ctx, adversary, to, message, shape);
  return changedContext(ctx, {
    send,
    broadcast: (message) => {
      for (const peer of ctx.peers) send(peer, message);
    },
  });
}

function sendFalsely(
  ctx: Context<Any>,
  { byzantine: memory = [] }: Remembering,
  behaviour: ByzantineBehaviour,
  to: NodeId,
  message: Tagged,
): void {
  if (behaviour === "mute") return;
  if (behaviour === "replayer") {
    ctx.send(to, message);
    const again = ctx.choose("say again", [null, ...memory.map((letter) => letter.message)]);
    if (again !== null) ctx.send(to, again);
    memory.push({ to, message });
    if (memory.length > MEMORY) memory.shift();
  } else if (behaviour === "delayer") {
    if (memory.length < MEMORY && ctx.choose("keep back", [false, true])) memory.push({ to, message });
    else ctx.send(to, message);
  } else {
    const { lie } = behaviour as { lie: (to: NodeId, message: Tagged) => readonly Tagged[] };
    const lies = behaviour === "equivocator" ? variations(message) : lie(to, message);
    if (lies.length > 0) ctx.send(to, ctx.choose("lie", lies));
  }
}

/** The message, none at all, or a lie. What it would have said it knows from now on. */
function sendAnything(ctx: Context<Any>, adversary: Adversary, to: NodeId, message: Tagged, shape: ShapeNode): void {
  const lies = to === ctx.self || adversary.left === 0 ? [] : [null, ...liesAbout(message, shape, adversary.seen, ctx)];
  const lie = lies.length > 0 && ctx.choose("lies", [false, true]) ? ctx.choose("lie", lies) : message;
  if (lie !== message) spend(adversary);
  see(adversary, message);
  if (lie !== null) ctx.send(to, lie);
}

/** It may send anybody what it has seen, though its algorithm has nothing to send. */
function sayMore(ctx: Context<Any>, adversary: Adversary): void {
  if (adversary.left === 0 || adversary.seen.length === 0 || !ctx.choose("says more", [false, true])) return;
  spend(adversary);
  ctx.send(ctx.choose("to", ctx.peers), ctx.choose("message", adversary.seen));
}

function spend(adversary: Adversary): void {
  if (adversary.left !== null) adversary.left -= 1;
}

function see({ seen }: Adversary, message: Tagged): void {
  if (seen.some((known) => equal(known, message))) return;
  seen.push(clone(message));
  if (seen.length > MEMORY) seen.shift();
}

function releaseOne({ byzantine: memory = [] }: Remembering, ctx: Context<Any>): void {
  if (memory.length === 0 || !ctx.choose("release", [false, true])) return;
  const { to, message } = memory.shift() as Letter;
  ctx.send(to, message);
}

/** The value itself, and with one of the numbers in it one higher or one lower, never below 0. */
function variations<T>(value: T): T[] {
  if (typeof value === "number") return (value >= 1 ? [value, value + 1, value - 1] : [value, value + 1]) as T[];
  if (typeof value !== "object" || value === null) return [value];
  const changed = Object.entries(value).flatMap(([key, inner]) =>
    variations(inner)
      .slice(1)
      .map((other) => (Array.isArray(value) ? value.with(Number(key), other) : { ...value, [key]: other })),
  );
  return [value, ...(changed as T[])];
}

/** A property that does not look at liars. */
function ofCorrectNodes<V extends Vocabulary>(property: Property<V>, liars: ReadonlyMap<NodeId, unknown>): Property<V> {
  const correct = (world: World<Any>): World<Any> => ({
    alive: world.alive.filter((node) => !liars.has(node)),
    nodes: world.nodes.filter((node) => !liars.has(node)),
    state: (node) => world.state(node),
    history: (node) => world.history(node),
  });
  if (property.when !== "leadsTo")
    return { ...property, holds: (world: World<StateOf<V>>) => property.holds(correct(world)) };
  return {
    ...property,
    given: (world, node) => !liars.has(node) && property.given(correct(world), node),
    holds: (world, node) => property.holds(correct(world), node),
  };
}
