/**
 * Options of the checker: the parts of a checked system, and its faults. Each call validates them, since a misspelled bound
 * would otherwise be ignored.
 */
import type { CommandOf, NodeId, Property, Protocol, StateOf, Vocabulary } from "../core/protocol.ts";
import {
  callback,
  flag,
  isObject,
  natural,
  needed,
  nodes,
  oneOf,
  protocol,
  type Rule,
  type Rules,
} from "../protocols/known-options.ts";
import type { NetworkKind } from "./network.ts";

/** The values of options with a fixed set of values. */
export const choices = {
  network: ["fifo", "inbox", "bag"],
  timers: ["free", "quiet", "rounds", "never"],
  begin: ["idle", "down", "together"],
  crashNotifications: ["any", "last"],
  journal: ["kept", "lost"],
  strategy: ["random", "pct", "swarm"],
} as const;

/** When timers fire. See `ModelOptions.timers`. */
export type TimerMode = (typeof choices.timers)[number];

/**
 * When nodes are notified of a crash. `any`: at any time, even before they receive a message that the crashed node sent.
 * `last`: when nothing from the crashed node is in flight to them, as with bounded delays and a detector that waits longer.
 */
export type CrashNotificationTime = (typeof choices.crashNotifications)[number];

/** The checked system: a protocol, its nodes, network, timers, commands and faults. */
export interface ModelOptions<V extends Vocabulary> {
  readonly protocol: Protocol<V>;
  /** The properties to check. Default: the protocol's own. Their histories of nodes are part of the state. */
  readonly properties?: readonly Property<V>[];
  readonly nodes: readonly NodeId[];
  readonly network: NetworkKind;
  /**
   * `free`: an armed timer can fire at any time. `quiet`: only when no message is in flight. This is the case if timers are
   * longer than anything a message causes. It excludes races between timers, and exchanges longer than a timer. `rounds`:
   * timers of all nodes fire together, and only when no message is in flight, as at the end of a synchronous round. `never`:
   * excludes all behavior that depends on timeouts.
   */
  readonly timers: TimerMode;
  /**
   * `idle`: every node is up and has not run `start`. `down`: each node starts at any time, and messages sent to it earlier are
   * lost. `together`: all run `start` first, one after another in the order of `nodes`; messages to nodes that have not started
   * yet wait for them.
   */
  readonly begin: (typeof choices.begin)[number];
  /** The commands that the application gives to each node, in order, each once and at any time. A crash does not undo them. */
  readonly asks?: (node: NodeId) => readonly CommandOf<V>[];
  /** The commands that the application can give in a state, as often as it likes. Default: none. */
  readonly commands?: (state: StateOf<V>, self: NodeId) => readonly CommandOf<V>[];
  /** Whether a node in that state accepts messages. Others wait. Default: always. */
  readonly accepts?: (state: StateOf<V>, self: NodeId) => boolean;
  /**
   * The command that notifies every running node, some time after a crash, as from a perfect failure detector: it suspects
   * exactly the crashed nodes. A notification counts as a message in flight. It is withdrawn when the node recovers. Null:
   * none.
   */
  readonly crashNotification?: (crashed: NodeId) => CommandOf<V> | null;
  /** Default: `any`. */
  readonly crashNotifications?: CrashNotificationTime;
  /** The maximum numbers of crashes, recoveries, lost messages and duplicated messages. Default: none. */
  readonly crashes?: number;
  readonly recoveries?: number;
  readonly losses?: number;
  /**
   * Whether a crash can happen within a step, just before any of its sends: earlier effects take place, later ones do not. By
   * default crashes only happen between steps.
   */
  readonly withinStep?: boolean;
  /** A duplicated message is delivered and stays in flight. */
  readonly duplications?: number;
  /** The maximum number of all faults together. Default: no additional limit. */
  readonly faults?: number;
  /** Whether a node's journal survives a crash. Default: it is kept. */
  readonly journal?: (typeof choices.journal)[number];
  /**
   * Deliver in one fixed order, with at most this many exceptions. A node receives everything in flight to it, in the order of
   * `network`, then the next node with messages in flight. Skipping a node until its next turn counts as one delay (Emmi,
   * Qadeer & Rakamarić, "Delay-Bounded Scheduling", POPL 2011). A few delays find most bugs, even with many messages. Only for
   * properties of single states. Default: any order.
   */
  readonly delays?: number;
  /** Runs with more messages in flight are cut off. If nothing is violated then, the verdict is `unknown`. */
  readonly maxInFlight?: number;
  /** Runs with more timeouts are cut off. If nothing is violated then, the verdict is `unknown`. */
  readonly maxTimeouts?: number;
  /**
   * Names of fields with counters, such as the rounds of ballots, which are only compared with each other and incremented.
   * States that differ by the same shift of all these fields, in states, journals and messages, are treated as equal. So a duel
   * with ever increasing rounds becomes a loop.
   */
  readonly counters?: readonly string[];
  /**
   * Names of fields with rounds, such as the rounds of leases, which are only compared with each other and with numbers one or
   * two higher, checked for parity, and incremented. A gap of more than three is reduced by multiples of two. So a node that
   * retries forever becomes a loop.
   */
  readonly rounds?: readonly string[];
}

const isText = (value: unknown): boolean => typeof value === "string";
export const orNull = ({ wanted, accepts }: Rule): Rule => ({
  wanted: `${wanted} or null`,
  accepts: (value) => value === null || accepts(value),
});

const names: Rule = { wanted: "a list of names", accepts: (value) => Array.isArray(value) && value.every(isText) };
export const name: Rule = { wanted: "a name", accepts: isText };
const properties: Rule = {
  wanted: "a list of properties",
  accepts: (value) => Array.isArray(value) && value.every(isObject),
};
/** Infinity: no limit. */
const faults: Rule = {
  wanted: `${natural.wanted}, or Infinity`,
  accepts: (value) => value === Number.POSITIVE_INFINITY || natural.accepts(value),
};

export const modelLimits = {
  crashes: natural,
  recoveries: natural,
  losses: natural,
  duplications: natural,
  faults,
  journal: oneOf(...choices.journal),
  withinStep: flag,
  maxInFlight: natural,
  maxTimeouts: natural,
};

export const modelRules: Rules<ModelOptions<Vocabulary>> = {
  protocol: needed(protocol),
  properties,
  nodes: needed(nodes),
  network: needed(oneOf(...choices.network)),
  timers: needed(oneOf(...choices.timers)),
  begin: needed(oneOf(...choices.begin)),
  asks: callback,
  commands: callback,
  accepts: callback,
  crashNotification: callback,
  crashNotifications: oneOf(...choices.crashNotifications),
  ...modelLimits,
  delays: natural,
  counters: names,
  rounds: names,
};

/** Options of random runs. Exploration and shrinking ignore them, so that one set of options serves all. */
export const walkRules = {
  strategy: oneOf(...choices.strategy),
  seed: { wanted: "a whole number", accepts: Number.isSafeInteger },
  runs: natural,
  firstRun: natural,
  numbers: {
    wanted: "numbers of runs that can be enumerated",
    accepts: (value: unknown) => typeof value === "object" && value !== null && Symbol.iterator in value,
  },
  stepsPerRun: natural,
  bugDepth: natural,
};

/**
 * Budgets: how many more faults and timeouts a run can have. They are a few numbers at the end of a state's tuple, one per
 * limit.
 */
/** Everything that has a budget. All but timeouts are faults. */
export const faultKinds = ["crashes", "recoveries", "losses", "duplications"] as const;
export type FaultKind = (typeof faultKinds)[number];
export type Counted = FaultKind | "timeouts";

export interface Limits extends Readonly<Partial<Record<FaultKind, number>>> {
  /** The maximum number of faults of all kinds together. */
  readonly faults?: number;
  readonly maxTimeouts?: number;
}

export class Budgets {
  /** The number of budgets in the tuple. */
  readonly width: number;
  /** The budgets at the beginning of a run. */
  readonly full: readonly number[];
  /** The budgets that each kind uses, as indices into the tuple. Null: it never happens. */
  readonly #drawnOn: Readonly<Record<Counted, readonly number[] | null>>;

  /** @param at the index in the tuple at which the budgets begin */
  constructor(limits: Limits, at: number) {
    const full: number[] = [];
    const open = (size: number): number => at + full.push(size) - 1;
    const together = limits.faults ?? Number.POSITIVE_INFINITY;
    const allowed = (kind: FaultKind): number => (together === 0 ? 0 : (limits[kind] ?? 0));
    const isShared = Number.isFinite(together) && faultKinds.some((kind) => allowed(kind) > 0);
    const shared = isShared ? [open(together)] : [];
    const drawnOn = (kind: FaultKind): readonly number[] | null => {
      if (allowed(kind) === 0) return null;
      return allowed(kind) < together ? [...shared, open(allowed(kind))] : shared;
    };
    this.#drawnOn = {
      crashes: drawnOn("crashes"),
      recoveries: drawnOn("recoveries"),
      losses: drawnOn("losses"),
      duplications: drawnOn("duplications"),
      timeouts: limits.maxTimeouts === undefined ? [] : [open(limits.maxTimeouts)],
    };
    this.full = full;
    this.width = full.length;
  }

  /** Whether it can happen in some run. */
  has(kind: Counted): boolean {
    return this.#drawnOn[kind] !== null;
  }

  mayHappen(tuple: Int32Array, kind: Counted): boolean {
    const places = this.#drawnOn[kind];
    if (places === null) return false;
    for (let i = 0; i < places.length; i++) if ((tuple[places[i] as number] as number) <= 0) return false;
    return true;
  }

  /** Whether no more faults can happen, and nothing else has a budget. */
  areSpent(tuple: Int32Array): boolean {
    return this.#drawnOn.timeouts?.length === 0 && !faultKinds.some((kind) => this.mayHappen(tuple, kind));
  }

  spend(tuple: Int32Array, kind: Counted): void {
    for (const place of this.#drawnOn[kind] ?? []) tuple[place] = (tuple[place] as number) - 1;
  }
}
