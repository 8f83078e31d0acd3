/**
 * Nodes that lie. A protocol in, a protocol out: some of its nodes still run the algorithm, but what they send is
 * changed on its way out, as their behaviour says and as `ctx.choose` picks. So every driver runs liars like anything
 * else. The properties of the result speak of the correct nodes alone.
 */
import { UsageError, unexpected } from "../core/errors.ts";
import type { Context, NodeId, Property, Protocol, StateOf, Tagged, Vocabulary, World } from "../core/protocol.ts";
import { changedContext } from "./contexts.ts";

export type ByzantineBehaviour =
  /** Sends nothing. */
  | "mute"
  /** Sends each receiver the message as it is, or with one of its numbers one higher or one lower. */
  | "equivocator"
  /** Sends what it should, and then may send the same receiver once more what it has sent anybody before. */
  | "replayer"
  /** May keep a message back, and send it when something has reached it later. */
  | "delayer"
  /** Sends `to` one of these instead; nothing if there are none. */
  | { readonly lie: (to: NodeId, message: Tagged) => readonly Tagged[] };

const behaviours: readonly unknown[] = ["mute", "equivocator", "replayer", "delayer"];

/** How many messages a replayer or a delayer remembers: its state stays bounded. */
const MEMORY = 4;

type Letter = { to: NodeId; message: Tagged };
/** What a Byzantine node's state has besides the algorithm's own: messages that it has sent, or keeps back. */
type Remembering = { byzantine?: Letter[] };

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
    if (!behaviours.includes(behaviour) && typeof (behaviour as { lie?: unknown }).lie !== "function")
      throw new UsageError(
        "bad-behaviour",
        unexpected(`the behaviour of node ${node}`, `one of ${behaviours.join(", ")}, or { lie }`, behaviour),
      );
  }

  /** The same handler; at a liar, with a context that lies. State and context are its first and its last argument. */
  const wrap =
    (handler: Handler): Handler =>
    (...args) => {
      const ctx: Context<Any> = args.at(-1);
      const behaviour = liars.get(ctx.self);
      if (behaviour === undefined) return handler(...args);
      const lying = lyingContext(ctx, args[0], behaviour);
      if (behaviour === "delayer") releaseOne(args[0], ctx);
      handler(...args.slice(0, -1), lying);
    };
  const wrapAll = (table: Record<string, Handler> | undefined): Record<string, Handler> | undefined =>
    table && Object.fromEntries(Object.entries(table).map(([name, handler]) => [name, wrap(handler)]));
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
      return behaviour === "replayer" || behaviour === "delayer" ? { ...state, byzantine: [] } : state;
    },
    properties: protocol.properties.map((property) => ofCorrectNodes(property, liars)),
  } as Protocol<V>;
}

/** A context whose messages are not what the handler says. */
function lyingContext(ctx: Context<Any>, state: Remembering, behaviour: ByzantineBehaviour): Context<Any> {
  const send = (to: NodeId, message: Tagged): void => sendFalsely(ctx, state, behaviour, to, message);
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
    const lies = behaviour === "equivocator" ? variations(message) : behaviour.lie(to, message);
    if (lies.length > 0) ctx.send(to, ctx.choose("lie", lies));
  }
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
