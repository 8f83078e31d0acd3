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
import { liesAbout, variationsOf } from "./lies.ts";

/** Behaviours that are plain data. */
export type NamedBehaviour = Exclude<ByzantineBehaviour, { lie: unknown }>;

export type ByzantineBehaviour =
  | BehaviourName
  /** `adversary` at most so many times in each of its lives: then it is honest, and there are finitely many runs. */
  | { readonly lies: number }
  /** `flood` with so many messages in each of its lives; null: for ever. */
  | { readonly floods: number | null }
  /** Sends `to` one of these instead; nothing if there are none. */
  | { readonly lie: (to: NodeId, message: Tagged) => readonly Tagged[] };

/** How a node lies, by name, in simulator, checker and processes. What it signs it signs for itself alone. */
export const behaviourSummaries = {
  mute: "sends nothing",
  equivocate: "sends each receiver the message as it is, or with one of its values another",
  replay: "sends what it should, and then perhaps what it has sent or received before",
  withhold: "may keep a message back, and send it when something has reached it later",
  forge: "sends in the place of each message another, made of what it has seen",
  flood: "sends what it should, and all that it has seen again and again to everybody",
  adversary:
    "any of it, whenever it pleases: says anything in the place of a message, or nothing, and what it has seen unasked",
} as const;
export type BehaviourName = keyof typeof behaviourSummaries;
export const behaviours = Object.keys(behaviourSummaries) as readonly BehaviourName[];

export const behaviourNamed = (name: string): BehaviourName | undefined => behaviours.find((each) => each === name);

/** The same among real processes, which live on: there a flood does not end. */
export const onProcesses = (behaviour: BehaviourName): NamedBehaviour =>
  behaviour === "flood" ? { floods: null } : behaviour;

/** How many messages a liar remembers, and how many it keeps back: its state stays bounded. */
const MEMORY = 4;
/** Of `flood` by name, which ends, so that runs do. */
const FLOOD_MESSAGES = 1_000;
const FLOOD_EVERY_MS = 10;
/** To each peer, each time. */
const FLOOD_BURST = 20;
const FLOOD_TIMER = "byzantine";

type Letter = { to: NodeId; message: Tagged };
/** What a liar's state has besides the algorithm's own. */
type Lying = { byzantine: Memory };
type Memory = {
  /** The last messages that it has sent or received, none twice. */
  seen: Tagged[];
  kept: Letter[];
  /** How often it may still lie; null: as often as it likes. */
  left: number | null;
  isFlooding: boolean;
};
/** One behaviour: what it does where its algorithm sends, and before each step. */
type Way = {
  readonly remembers: boolean;
  readonly left: number | null;
  send(ctx: Context<Any>, memory: Memory, to: NodeId, message: Tagged, shape: ShapeNode): void;
  before?(ctx: Context<Any>, memory: Memory): void;
  /** When its own timer has run out. */
  again?(ctx: Context<Any>, memory: Memory): void;
};

// Inside, tables are walked by name and messages are whatever the protocol says; the signatures keep callers honest.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;
type Handler = (...args: Any[]) => void;

/** @throws UsageError for a behaviour that is none. */
export function byzantine<V extends Vocabulary>(
  protocol: Protocol<V>,
  liars: ReadonlyMap<NodeId, ByzantineBehaviour>,
): Protocol<V> {
  const ways = new Map([...liars].map(([node, behaviour]) => [node, wayOf(node, behaviour)]));
  const shape = variants((protocol.shapes.message ?? {}) as Any);

  /** The same handler; at a liar, with a context that lies. State and context are its first and its last argument. */
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
        if (!(error instanceof InvariantViolation)) throw error; // What it has brought upon itself proves nothing.
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

/** A context whose messages are not what the handler says. What a liar tells itself is true. */
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
    memory.isFlooding = memory.left !== 0 && memory.seen.length > 0; // Else the next step begins anew.
    if (memory.isFlooding) ctx.setTimer(FLOOD_TIMER, FLOOD_EVERY_MS);
  },
});

const adversary = (left: number | null): Way => ({
  remembers: true,
  left,
  /** The message, none at all, or a lie. What it would have said it knows from now on. */
  send(ctx, memory, to, message, shape) {
    const lies = memory.left === 0 ? [] : [null, ...liesAbout(message, shape, memory.seen, ctx)];
    const lie = lies.length > 0 && ctx.choose("lies", [false, true]) ? ctx.choose("lie", lies) : message;
    if (lie !== message) spend(memory);
    see(memory, message);
    if (lie !== null) ctx.send(to, lie);
  },
  /** It may send anybody what it has seen, though its algorithm has nothing to send. */
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

/** @throws UsageError for a behaviour that is none. */
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
      `the behaviour of node ${node}`,
      `one of ${behaviours.join(", ")}, { lies }, { floods } or { lie }`,
      behaviour,
    ),
  );
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

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
