/**
 * The mutual exclusion workload: a node enters a number of times; each time, it stays inside for a while, leaves, and
 * rests. The workload is a part like any other, so every driver runs all algorithms with the same workload.
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

/** A node's relation to the section: outside and idle, waiting to enter, or inside. */
export type Section = "released" | "wanted" | "held";

/**
 * Creates ME1 and ME2 from a function that returns a node's section. The algorithm is not idle while any of
 * `pendingTimers` is running.
 */
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
      claim: "when idle, no node waits to enter unless another node is inside",
      when: "quiescent",
      pendingTimers,
      holds: (world) => count(world, "wanted") === 0 || count(world, "held") > 0,
    },
    {
      name: "ME2 no starvation",
      claim: "every node that waits to enter eventually enters",
      when: "leadsTo",
      given: ({ state }, node) => sectionOf(state(node)) === "wanted",
      holds: ({ state }, node) => sectionOf(state(node)) === "held",
    },
  ];
}

// The tokens of all entries so far. A crash does not remove a token, because the entry's effects on resources remain.

/** A node's tokens, in the order of its entries. */
type Granted = readonly number[];

interface Entering extends Vocabulary {
  event: { type: "entered"; token: number };
}

/** The history of granted tokens, for use in properties. */
export const grantedTokens = {
  empty: [] as Granted,
  after: (before: Granted, event: { readonly type: string }): Granted =>
    event.type === "entered" ? [...before, (event as EventOf<Entering>).token] : before,
} as const;

/**
 * Returns a function that checks that each token was granted only once. Because a list is replaced when it grows,
 * unchanged lists are not checked again.
 */
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

/**
 * The number of entries per epoch that tokens can represent. A fencing token is the safe integer epoch · 2²⁸ + entries,
 * which allows for 2²⁵ epochs with 2²⁸ entries each.
 */
export const ENTRIES = 2 ** 28;
/** The number of epochs that tokens can represent. */
export const EPOCHS = 2 ** 25;

/** Returns the fencing token for an entry in an epoch. */
export const fence = (epoch: number, entries: number): number => epoch * ENTRIES + entries;
/** Returns the epoch of a fencing token. */
export const epochOf = (token: number): number => Math.floor(token / ENTRIES);
/** Whether tokens would exceed the safe integers. Only a Byzantine node sends such an epoch or entry count. */
export const isBeyond = (epoch: number, entries = 0): boolean => epoch >= EPOCHS || entries >= ENTRIES;

/** Vocabulary of the mutual exclusion workload. */
export type MutexWorkload = {
  state: {
    doing: "idle" | "waiting" | "inside" | "resting";
    /** The remaining number of entries, including the current one. */
    left: number;
    /** The number of entries that the node has made so far. */
    entries: number;
    /** The token of the node's last entry, or 0 before the first. */
    token: number;
  };
  timer: "stay" | "rest";
  command: /** Enters `entries` more times. */
    | { type: "use"; entries: number }
    /** Reports that the node has entered. */
    | { type: "entered"; token: number }
    /** Reports that the permission has been lost. A node that is inside must leave. */
    | { type: "lost" };
  event: { type: "needed" } | { type: "finished" };
};

const workloadOptions = optionTable("workload", {
  stayMs: positive(5, "how long a node stays inside"),
  restMs: positive(5, "how long a node pauses between two entries"),
});

/** Options of `mutexWorkload()`. */
export type MutexWorkloadOptions = OptionsOf<typeof workloadOptions>;

/**
 * The interface of all mutual exclusion algorithms. Tokens increase from one entry to the next, across all nodes. A
 * resource that remembers the highest token can reject a stale holder.
 */
export interface Mutex extends Vocabulary {
  /** Commands to enter and exit, and notifications from a failure detector. */
  command:
    | { type: "enter" }
    | { type: "exit" }
    /** Reports that a failure detector suspects the node, or no longer does. Some algorithms ignore these commands. */
    | { type: "suspect" | "restore"; node: NodeId };
  /** Changes of the permission. */
  event:
    | { type: "entered"; token: number }
    | { type: "exited" }
    /** In algorithms with leases, the permission lasts until the event's deadline. */
    | { type: "confirmed"; token: number }
    /** In algorithms with leases, another node may be inside from now on. */
    | { type: "lost"; token: number };
}

type State = MutexWorkload["state"];
type Ctx = Context<MutexWorkload>;

/** Creates the mutual exclusion workload. @throws UsageError if an option is unknown or out of range. */
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
        if (state.doing !== "waiting") return; // The node has not made a request.
        state.doing = "inside";
        state.entries += 1;
        state.token = token;
        ctx.setTimer("stay", stayMs);
      },
      lost(state, _command, ctx) {
        if (state.doing !== "inside") return; // The node has already left.
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

/** Vocabulary of a mutual exclusion algorithm with a workload. */
export type MutexWithWorkload<M extends Mutex> = Assembly<{ workload: MutexWorkload; mutex: M }>;

/** Options of `mutexWithWorkload()`, by part. */
export interface MutexWithWorkloadOptions<O> {
  /** Options of the workload. */
  workload?: Partial<MutexWorkloadOptions>;
  /** Options of the algorithm. */
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

/**
 * The failure detector's timer, which never stops. While it is running, the system is not idle, because the detector
 * may still report the crash of a node that another node is waiting for.
 */
const BEAT = "detector.beat";

/** Adds a workload to every node of a system whose algorithm is its `mutex` part. */
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

/** Creates a mutual exclusion algorithm with a workload at every node. @param mutex creates the algorithm */
export const mutexWithWorkload = <M extends Mutex, O extends object>(
  mutex: (options?: O) => Protocol<M>,
  options?: MutexWithWorkloadOptions<O>,
): Protocol<MutexWithWorkload<M>> =>
  withMutexWorkload<{ mutex: M }, { mutex?: O }>({ parts: { mutex }, wires: {}, algorithm: "mutex" })(options);

/** Vocabulary of a mutual exclusion algorithm with a workload and a failure detector. */
export type MonitoredMutex<M extends Mutex> = Assembly<{ workload: MutexWorkload; mutex: M; detector: Heartbeat }>;

/** Adds a failure detector to a mutual exclusion algorithm that accepts crash notifications. */
export const monitored = (mutex: AnyMaker): System => ({
  parts: { mutex, detector: heartbeat },
  wires: watching("mutex"),
  algorithm: "mutex",
});

/** Creates a mutual exclusion algorithm with a failure detector and a workload at every node. */
export const monitoredMutex = <M extends Mutex, O extends object>(
  mutex: (options?: O) => Protocol<M>,
  options?: MutexWithWorkloadOptions<O> & { detector?: Partial<HeartbeatOptions> },
): Protocol<MonitoredMutex<M>> =>
  withMutexWorkload<{ mutex: M; detector: Heartbeat }, { mutex?: O; detector?: Partial<HeartbeatOptions> }>(
    monitored(mutex),
  )(options);

/** The tokens of a node's entries, including entries made before a crash. */
interface Entries {
  highest: number;
  /** Whether each token is higher than the previous one. */
  grow: boolean;
}

/** Tokens grow. This is a property of the workload, because only the tokens that users observe matter. */
const tokensGrow = {
  name: "tokens grow",
  claim: "a node inside has a higher token than every earlier entry, including entries by crashed nodes",
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
