/**
 * Makes some nodes of a protocol Byzantine. All nodes run the same algorithm, but a Byzantine node changes its outgoing
 * messages, depending on its behavior and on the values that `ctx.choose` picks. Drivers therefore run Byzantine nodes
 * like any others. The wrapped protocol's properties apply only to correct nodes.
 */
import { InvariantViolation, UsageError, unexpected } from "../core/errors.ts";
import { clone, equal } from "../core/plain.ts";
import type { Context, NodeId, Property, Protocol, StateOf, Tagged, Vocabulary, World } from "../core/protocol.ts";
import { type ShapeNode, variants } from "../core/shape.ts";
import { changedContext } from "./contexts.ts";
import { liesAbout, variationsOf } from "./lies.ts";

/** A behavior described by plain data, without a function. */
export type NamedBehaviour = Exclude<ByzantineBehaviour, { lie: unknown }>;

/** How a Byzantine node deviates from its algorithm. */
export type ByzantineBehaviour =
  | BehaviourName
  /**
   * Like `adversary`, but with at most `lies` falsifications per incarnation of the node. After that, the node behaves
   * correctly, so that runs are finite.
   */
  | { readonly lies: number }
  /** Like `flood`, but with this number of messages per incarnation of the node, or an unlimited number if null. */
  | { readonly floods: number | null }
  /**
   * A function that returns the alternatives to `message`. The node sends one of them to `to`, or nothing if the list
   * is empty.
   */
  | { readonly lie: (to: NodeId, message: Tagged) => readonly Tagged[] };

/** The named behaviors, for the simulator, the checker and processes. A Byzantine node can sign only as itself. */
export const behaviourSummaries = {
  mute: "sends nothing",
  equivocate: "may change one value of a message, differently for each receiver",
  replay: "sends correct messages, and may repeat messages that it sent or received",
  withhold: "may delay a message until it has received another one",
  forge: "replaces each message with one made of values that it has seen",
  flood: "sends correct messages, and also resends every message that it has seen to all nodes",
  adversary: "any of these at any time: replaces or drops messages, and sends messages of its own",
} as const;
/** The name of a Byzantine behavior. */
export type BehaviourName = keyof typeof behaviourSummaries;
/** The names of all behaviors. */
export const behaviours = Object.keys(behaviourSummaries) as readonly BehaviourName[];

/** Returns the name if it is a known behavior, otherwise undefined. */
export const behaviourNamed = (name: string): BehaviourName | undefined => behaviours.find((each) => each === name);

/** Returns the behavior to use in real processes. Because processes keep running, their flood has no limit. */
export const onProcesses = (behaviour: BehaviourName): NamedBehaviour =>
  behaviour === "flood" ? { floods: null } : behaviour;

/**
 * The maximum number of messages that a Byzantine node remembers, and the maximum that it withholds. The limits keep
 * its state bounded.
 */
const MEMORY = 4;
/** The number of messages that `flood` sends if the behavior is given by name. The limit keeps runs finite. */
const FLOOD_MESSAGES = 1_000;
const FLOOD_EVERY_MS = 10;
/** The number of messages to each peer per burst. */
const FLOOD_BURST = 20;
const FLOOD_TIMER = "byzantine";

type Letter = { to: NodeId; message: Tagged };
/** The state that a Byzantine node has in addition to its algorithm's state. */
type Lying = { byzantine: Memory };
type Memory = {
  /** The latest distinct messages that the node has sent or received. */
  seen: Tagged[];
  kept: Letter[];
  /** The number of messages that the node may still falsify, or repeat in a flood. Null if unlimited. */
  left: number | null;
  isFlooding: boolean;
};
/** The implementation of one behavior: how it acts when the algorithm sends a message, and before each step. */
type Way = {
  readonly remembers: boolean;
  readonly left: number | null;
  send(ctx: Context<Any>, memory: Memory, to: NodeId, message: Tagged, shape: ShapeNode): void;
  before?(ctx: Context<Any>, memory: Memory): void;
  /** Runs when the behavior's timer expires. */
  again?(ctx: Context<Any>, memory: Memory): void;
};

// Tables are looked up by name, and messages can have any type. The exported functions' signatures keep callers
// type-safe.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;
type Handler = (...args: Any[]) => void;

/**
 * Makes some nodes of a protocol Byzantine.
 * @param liars the behaviors, keyed by node
 * @throws UsageError if a behavior is unknown.
 */
export function byzantine<V extends Vocabulary>(
  protocol: Protocol<V>,
  liars: ReadonlyMap<NodeId, ByzantineBehaviour>,
): Protocol<V> {
  const ways = new Map([...liars].map(([node, behaviour]) => [node, wayOf(node, behaviour)]));
  const shape = variants((protocol.shapes.message ?? {}) as Any);

  /**
   * Wraps a handler so that Byzantine nodes get a context that falsifies messages. The handler's first argument is the
   * state, and its last argument is the context.
   */
  const wrap =
    (handler: Handler): Handler =>
    (...args) => {
      const ctx: Context<Any> = args.at(-1);
      const way = ways.get(ctx.self);
      if (way === undefined) return handler(...args);
      const { byzantine: memory } = args[0] as Lying;
      if (args.length === 4 && way.remembers) see(memory, args[2]);
      try {
        way.before?.(ctx, memory);
        handler(...args.slice(0, -1), lyingContext(ctx, memory, way, shape));
      } catch (error) {
        if (!(error instanceof InvariantViolation)) throw error; // A Byzantine node may violate its own invariants.
      }
    };
  const wrapAll = (table: Record<string, Handler> | undefined): Record<string, Handler> | undefined =>
    table && Object.fromEntries(Object.entries(table).map(([name, handler]) => [name, wrap(handler)]));
  const { start, receive, timeout, command, ...rest } = protocol as Any;
  const again = (state: Lying, ctx: Context<Any>): void => ways.get(ctx.self)?.again?.(ctx, state.byzantine);
  const floods = [...ways.values()].some((way) => way.again !== undefined);
  return {
    ...rest,
    ...(start && { start: wrap(start) }),
    ...(receive && { receive: wrapAll(receive) }),
    timeout: { ...wrapAll(timeout), ...(floods && { [FLOOD_TIMER]: again }) },
    ...(command && { command: wrapAll(command) }),
    init(self: NodeId, peers: readonly NodeId[]) {
      const state = protocol.init(self, peers);
      const way = ways.get(self);
      if (way === undefined) return state;
      const memory: Memory = { seen: [], kept: [], left: way.left, isFlooding: false };
      return { ...state, byzantine: memory };
    },
    properties: protocol.properties.map((property) => ofCorrectNodes(property, liars)),
  } as Protocol<V>;
}

/** Returns a context that changes outgoing messages. Messages that a Byzantine node sends to itself stay correct. */
function lyingContext(ctx: Context<Any>, memory: Memory, way: Way, shape: ShapeNode): Context<Any> {
  const send = (to: NodeId, message: Tagged): void =>
    to === ctx.self ? ctx.send(to, message) : way.send(ctx, memory, to, message, shape);
  return changedContext(ctx, {
    send,
    broadcast: (message) => {
      for (const peer of ctx.peers) send(peer, message);
    },
  });
}

const named: Readonly<Record<Exclude<BehaviourName, "flood" | "adversary">, Way>> = {
  mute: { remembers: false, left: null, send: () => {} },
  equivocate: {
    remembers: false,
    left: null,
    send: (ctx, _memory, to, message, shape) =>
      ctx.send(to, ctx.choose("lie", [message, ...variationsOf(message, shape, ctx)])),
  },
  replay: {
    remembers: true,
    left: null,
    send(ctx, memory, to, message) {
      ctx.send(to, message);
      const again = ctx.choose("say again", [null, ...memory.seen]);
      if (again !== null) ctx.send(to, again);
      see(memory, message);
    },
  },
  withhold: {
    remembers: false,
    left: null,
    send(ctx, { kept }, to, message) {
      if (kept.length < MEMORY && ctx.choose("keep back", [false, true])) kept.push({ to, message });
      else ctx.send(to, message);
    },
    before(ctx, { kept }) {
      if (kept.length === 0 || !ctx.choose("release", [false, true])) return;
      const { to, message } = kept.shift() as Letter;
      ctx.send(to, message);
    },
  },
  forge: {
    remembers: true,
    left: null,
    send(ctx, memory, to, message, shape) {
      const lies = liesAbout(message, shape, memory.seen, ctx);
      see(memory, message);
      ctx.send(to, lies.length === 0 ? message : ctx.choose("lie", lies));
    },
  },
};

const flood = (left: number | null): Way => ({
  remembers: true,
  left,
  send(ctx, memory, to, message) {
    ctx.send(to, message);
    see(memory, message);
  },
  before(ctx, memory) {
    if (memory.isFlooding || memory.left === 0) return;
    memory.isFlooding = true;
    ctx.setTimer(FLOOD_TIMER, FLOOD_EVERY_MS);
  },
  again(ctx, memory) {
    for (let sent = 0; sent < FLOOD_BURST; sent++)
      for (const peer of ctx.peers) {
        const message = memory.seen[sent % memory.seen.length];
        if (memory.left === 0 || message === undefined) continue;
        spend(memory);
        ctx.send(peer, message);
      }
    memory.isFlooding = memory.left !== 0 && memory.seen.length > 0; // Otherwise the next step starts a new flood.
    if (memory.isFlooding) ctx.setTimer(FLOOD_TIMER, FLOOD_EVERY_MS);
  },
});

const adversary = (left: number | null): Way => ({
  remembers: true,
  left,
  /** Sends the message, a false message, or nothing. In every case, the node remembers the correct message. */
  send(ctx, memory, to, message, shape) {
    const lies = memory.left === 0 ? [] : [null, ...liesAbout(message, shape, memory.seen, ctx)];
    const lie = lies.length > 0 && ctx.choose("lies", [false, true]) ? ctx.choose("lie", lies) : message;
    if (lie !== message) spend(memory);
    see(memory, message);
    if (lie !== null) ctx.send(to, lie);
  },
  /** May replay a previously seen message to any peer, even when the algorithm would send nothing. */
  before(ctx, memory) {
    if (memory.left === 0 || memory.seen.length === 0 || !ctx.choose("says more", [false, true])) return;
    spend(memory);
    ctx.send(ctx.choose("to", ctx.peers), ctx.choose("message", memory.seen));
  },
});

const saying = (lie: (to: NodeId, message: Tagged) => readonly Tagged[]): Way => ({
  remembers: false,
  left: null,
  send(ctx, _memory, to, message) {
    const lies = lie(to, message);
    if (lies.length > 0) ctx.send(to, ctx.choose("lie", lies));
  },
});

function see({ seen }: Memory, message: Tagged): void {
  if (seen.some((known) => equal(known, message))) return;
  seen.push(clone(message));
  if (seen.length > MEMORY) seen.shift();
}

function spend(memory: Memory): void {
  if (memory.left !== null) memory.left -= 1;
}

/** @throws UsageError if the behavior is unknown. */
function wayOf(node: NodeId, behaviour: ByzantineBehaviour): Way {
  const name = typeof behaviour === "string" ? behaviourNamed(behaviour) : undefined;
  if (name === "flood") return flood(FLOOD_MESSAGES);
  if (name === "adversary") return adversary(null);
  if (name !== undefined) return named[name];
  const { lie, lies, floods } = Object(behaviour) as { lie?: unknown; lies?: unknown; floods?: unknown };
  if (isCount(lies)) return adversary(lies);
  if (floods === null || isCount(floods)) return flood(floods);
  if (typeof lie === "function") return saying(lie as (to: NodeId, message: Tagged) => readonly Tagged[]);
  throw new UsageError(
    "bad-behaviour",
    unexpected(
      `the behavior of node ${node}`,
      `one of ${behaviours.join(", ")}, { lies }, { floods } or { lie }`,
      behaviour,
    ),
  );
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** Restricts the property to correct nodes. */
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
