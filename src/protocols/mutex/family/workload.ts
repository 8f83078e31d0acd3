/**
 * The workload of a mutual exclusion: a node asks to enter a number of times, stays inside for a while, leaves, rests. A part
 * like any other, so every driver runs every mutual exclusion with the same workload.
 */
import type { Assembly, Parts, Wires } from "../../../core/assemble.ts";
import type {
  Context,
  EventOf,
  NodeId,
  Property,
  Protocol,
  StateOf,
  TimerOf,
  Vocabulary,
  World,
} from "../../../core/protocol.ts";
import { natural } from "../../../core/shape.ts";
import { type Heartbeat, type HeartbeatOptions, heartbeat, watching } from "../../membership/heartbeat.ts";
import { type OptionsOf, optionTable, positive } from "../../options.ts";
import { type AnyMaker, composed, joined, type System } from "../../system.ts";

/** Outside and not interested; asking; inside. */
export type Section = "released" | "wanted" | "held";

/** ME1 and ME2 of an algorithm whose state says where its node stands, and which is at work while a timer of `pendingTimers` runs. */
export function mutexProperties<V extends Vocabulary>(
  sectionOf: (state: StateOf<V>) => Section,
  pendingTimers: readonly TimerOf<V>[] = [],
): readonly Property<V>[] {
  type Nodes = World<StateOf<V>>;
  const count = ({ alive, state }: Nodes, section: Section): number =>
    alive.filter((node) => sectionOf(state(node)) === section).length;
  return [
    {
      name: "ME1 safety",
      claim: "at most one node is inside",
      when: "always",
      holds: (world) => count(world, "held") <= 1,
    },
    {
      name: "ME2 liveness",
      claim: "at rest, nobody waits to enter unless somebody is inside",
      when: "quiescent",
      pendingTimers,
      holds: (world) => count(world, "wanted") === 0 || count(world, "held") > 0,
    },
    {
      name: "ME2 no starvation",
      claim: "a node that waits to enter is inside in the end",
      when: "leadsTo",
      given: ({ state }, node) => sectionOf(state(node)) === "wanted",
      holds: ({ state }, node) => sectionOf(state(node)) === "held",
    },
  ];
}

// The tokens of all entries so far. No crash takes one of them back: what was written under it is still there.

/** Of one node, in the order of its entries. */
type Granted = readonly number[];

interface Entering extends Vocabulary {
  event: { type: "entered"; token: number };
}

export const grantedTokens = {
  empty: [] as Granted,
  after: (before: Granted, event: { readonly type: string }): Granted =>
    event.type === "entered" ? [...before, (event as EventOf<Entering>).token] : before,
} as const;

/** Whether each was given once. A list is replaced when it grows, so the same lists are counted once and not at every step. */
export function eachOnce(): (world: { nodes: readonly NodeId[]; history<H>(node: NodeId): H }) => boolean {
  let last: readonly Granted[] = [];
  let answer = true;
  return ({ nodes, history }) => {
    const lists = nodes.map((node) => history<Granted>(node));
    if (lists.length === last.length && lists.every((list, index) => list === last[index])) return answer;
    const all = lists.flat();
    last = lists;
    answer = new Set(all).size === all.length;
    return answer;
  };
}

/** A fencing token is one safe integer, epoch · 2²⁸ + entries: 2²⁵ epochs of 2²⁸ entries each. */
export const ENTRIES = 2 ** 28;
export const EPOCHS = 2 ** 25;

export const fence = (epoch: number, entries: number): number => epoch * ENTRIES + entries;
export const epochOf = (token: number): number => Math.floor(token / ENTRIES);
/** Nobody but a liar speaks of such an epoch or such a count: their tokens would be no safe integers. */
export const isBeyond = (epoch: number, entries = 0): boolean => epoch >= EPOCHS || entries >= ENTRIES;

export type MutexWorkload = {
  state: {
    doing: "idle" | "waiting" | "inside" | "resting";
    /** How many entries it still wants, the one that it waits for or is in included. */
    left: number;
    /** How many times it has been inside. */
    entries: number;
    /** Of its last entry; 0 before the first. */
    token: number;
  };
  timer: "stay" | "rest";
  command: /** Enter so many times more. */
    | { type: "use"; entries: number }
    /** From the mutual exclusion. */
    | { type: "entered"; token: number }
    /** From the mutual exclusion: the permission is gone, and a node that is inside has to leave. */
    | { type: "lost" };
  event: { type: "needed" } | { type: "finished" };
};

const workloadOptions = optionTable("workload", {
  stayMs: positive(5, "how long a node stays inside"),
  restMs: positive(5, "how long it rests between two entries"),
});

export type MutexWorkloadOptions = OptionsOf<typeof workloadOptions>;

/**
 * What every mutual exclusion offers to its users. The token grows from one entry to the next, over all nodes: a
 * resource that remembers the highest can turn away a holder that comes late.
 */
export interface Mutex extends Vocabulary {
  command:
    | { type: "enter" }
    | { type: "exit" }
    /** From a failure detector, where it is listened to. */
    | { type: "suspect" | "restore"; node: NodeId };
  event:
    | { type: "entered"; token: number }
    | { type: "exited" }
    /** Where permissions are leases: it is certain to last until the event's deadline. */
    | { type: "confirmed"; token: number }
    /** Where permissions are leases: it may be somebody else's from now on. */
    | { type: "lost"; token: number };
}

type State = MutexWorkload["state"];
type Ctx = Context<MutexWorkload>;

export function mutexWorkload(given?: Partial<MutexWorkloadOptions>): Protocol<MutexWorkload> {
  const { stayMs, restMs } = workloadOptions.settle(given);

  function ask(state: State, ctx: Ctx): void {
    state.doing = "waiting";
    ctx.emit({ type: "needed" });
  }

  function rest(state: State, ctx: Ctx): void {
    state.left -= 1;
    state.doing = state.left > 0 ? "resting" : "idle";
    if (state.left > 0) ctx.setTimer("rest", restMs);
  }

  return {
    name: "workload",
    init: () => ({ doing: "idle", left: 0, entries: 0, token: 0 }),
    timeout: {
      stay(state, ctx) {
        ctx.emit({ type: "finished" });
        rest(state, ctx);
      },
      rest: ask,
    },
    command: {
      use(state, { entries }, ctx) {
        state.left += entries;
        if (state.doing === "idle" && state.left > 0) ask(state, ctx);
      },
      entered(state, { token }, ctx) {
        if (state.doing !== "waiting") return; // It has not asked.
        state.doing = "inside";
        state.entries += 1;
        state.token = token;
        ctx.setTimer("stay", stayMs);
      },
      lost(state, _command, ctx) {
        if (state.doing !== "inside") return; // It has left already.
        ctx.cancelTimer("stay");
        rest(state, ctx);
      },
    },
    shapes: { command: { use: { entries: natural }, entered: { token: natural }, lost: {} } },
    source: "Coulouris et al. §15.2: enter(), resourceAccesses(), exit()",
    assumes: [],
    properties: [],
    costs: [],
    view: ({ doing }) => ({ role: doing }),
  };
}

export type MutexWithWorkload<M extends Mutex> = Assembly<{ workload: MutexWorkload; mutex: M }>;

export interface MutexWithWorkloadOptions<O> {
  workload?: Partial<MutexWorkloadOptions>;
  mutex?: O;
}

const workloadWires: Wires<{ workload: MutexWorkload; mutex: Mutex }> = {
  workload: {
    needed: (_event, give) => give("mutex", { type: "enter" }),
    finished: (_event, give) => give("mutex", { type: "exit" }),
  },
  mutex: {
    entered: ({ token }, give) => give("workload", { type: "entered", token }),
    lost: (_event, give) => give("workload", { type: "lost" }),
  },
};

/** A failure detector goes on beating, and a node that waits for one that is down may be told so. */
const BEAT = "detector.beat";

/** The system with a workload at every node. Its algorithm is the part `mutex`. */
export function withMutexWorkload<P extends Parts, O extends object>({ parts, wires, algorithm }: System) {
  const whole = { parts: { workload: mutexWorkload, ...parts }, wires: joined(workloadWires, wires), algorithm };
  const make = composed<{ workload: MutexWorkload } & P, O & { workload?: Partial<MutexWorkloadOptions> }>(whole);
  const quiet = Object.hasOwn(parts, "detector") ? [BEAT] : [];
  return (options?: Parameters<typeof make>[0]): ReturnType<typeof make> => {
    const assembly = make(options);
    const properties = assembly.properties.map((property) =>
      property.when === "quiescent"
        ? { ...property, pendingTimers: [...(property.pendingTimers ?? []), ...quiet] }
        : property,
    );
    return { ...assembly, properties: [...properties, tokensGrow] } as never;
  };
}

/** A mutual exclusion with a workload at every node. */
export const mutexWithWorkload = <M extends Mutex, O extends object>(
  mutex: (options?: O) => Protocol<M>,
  options?: MutexWithWorkloadOptions<O>,
): Protocol<MutexWithWorkload<M>> =>
  withMutexWorkload<{ mutex: M }, { mutex?: O }>({ parts: { mutex }, wires: {}, algorithm: "mutex" })(options);

export type MonitoredMutex<M extends Mutex> = Assembly<{ workload: MutexWorkload; mutex: M; detector: Heartbeat }>;

/** The system of a mutual exclusion that can be told of crashes. */
export const monitored = (mutex: AnyMaker): System => ({
  parts: { mutex, detector: heartbeat },
  wires: watching("mutex"),
  algorithm: "mutex",
});

/** The same with a workload at every node. */
export const monitoredMutex = <M extends Mutex, O extends object>(
  mutex: (options?: O) => Protocol<M>,
  options?: MutexWithWorkloadOptions<O> & { detector?: Partial<HeartbeatOptions> },
): Protocol<MonitoredMutex<M>> =>
  withMutexWorkload<{ mutex: M; detector: Heartbeat }, { mutex?: O; detector?: Partial<HeartbeatOptions> }>(
    monitored(mutex),
  )(options);

/** The tokens of a node's entries, those before its crashes included. */
interface Entries {
  highest: number;
  /** Whether each was above the one before. */
  grow: boolean;
}

/** Of the workload, since a token is only worth what its users see of it. */
const tokensGrow = {
  name: "tokens grow",
  claim:
    "a node that is inside has a token above those of all other entries so far, also of nodes that have crashed since",
  when: "always",
  history: {
    empty: { highest: 0, grow: true } as Entries,
    after(before: Entries, { type, body }: { type: string; body: { type: string; token?: number } }): Entries {
      const { token } = body;
      if (type !== "mutex" || body.type !== "entered" || token === undefined) return before;
      return { highest: Math.max(before.highest, token), grow: before.grow && token > before.highest };
    },
  },
  holds({ alive, nodes, state, history }: World<{ workload: State }>): boolean {
    const highest = (node: NodeId): number => history<Entries>(node).highest;
    const isHighest = (inside: NodeId): boolean =>
      nodes.every((node) => node === inside || highest(node) < highest(inside));
    return (
      nodes.every((node) => history<Entries>(node).grow) &&
      alive.every((node) => state(node).workload.doing !== "inside" || isHighest(node))
    );
  },
} as const;
