/**
 * Options of the checker: the components of the system being checked, and its faults. Every call validates its options,
 * because a misspelled bound would otherwise be ignored.
 */
import { UsageError, unexpected } from "../core/errors.ts";
import type { CommandOf, NodeId, Property, Protocol, StateOf, Vocabulary } from "../core/protocol.ts";
import {
  callback,
  fields,
  flag,
  isObject,
  natural,
  needed,
  nodes,
  oneOf,
  protocol,
  type Rule,
  type Rules,
  requireOptions,
} from "../protocols/known-options.ts";
import type { NetworkKind } from "./network.ts";
import type { TimeBounds } from "./timed-network.ts";

/** The allowed values for options that have a fixed set of values. */
export const choices = {
  network: ["fifo", "inbox", "bag"],
  timers: ["free", "quiet", "rounds", "timed", "never"],
  begin: ["idle", "down", "together"],
  crashNotifications: ["any", "last"],
  journal: ["kept", "lost"],
  strategy: ["random", "pct", "swarm"],
} as const;

/** When timers fire. See `ModelOptions.timers`. */
export type TimerMode = (typeof choices.timers)[number];

/**
 * When nodes are notified of a crash. `any`: at any time, even before they receive messages that the crashed node sent.
 * `last`: only when no message from the crashed node to them is in flight, as with bounded delays and a failure
 * detector with a longer timeout.
 */
export type CrashNotificationTime = (typeof choices.crashNotifications)[number];

/** The system to check: a protocol, its nodes, network, timers, commands and faults. */
export interface ModelOptions<V extends Vocabulary> {
  /** The protocol that every node runs. */
  readonly protocol: Protocol<V>;
  /**
   * The properties to check. Default: the protocol's own properties. The histories that they keep for nodes are part of
   * the state.
   */
  readonly properties?: readonly Property<V>[];
  /** The ids of all nodes. */
  readonly nodes: readonly NodeId[];
  /** The order of delivery to a node: `fifo`, `inbox` or `bag`. */
  readonly network: NetworkKind;
  /**
   * When timers fire. `free`: an armed timer can fire at any time. `quiet`: only when no message is in flight, which
   * models timers that outlast every exchange of messages. This excludes races between timers, and exchanges that take
   * longer than a timer. `rounds`: timers at all nodes fire together, and only when no message is in flight, as at the
   * end of a synchronous round. `timed`: messages and timers keep to the bounds in `time`. `never`: excludes all
   * behavior that depends on timeouts.
   */
  readonly timers: TimerMode;
  /**
   * The bounds on message delays, clock drift and pauses, for `timers: "timed"`. Time passes in whole units, up to the
   * first message or timer that is due. Events at the same time happen in any order, so two bounds that meet exactly
   * count as exceeded.
   */
  readonly time?: TimeBounds;
  /**
   * The initial state of the nodes. `idle`: every node is up and has not run `start`. `down`: each node starts at some
   * point, and messages sent to it earlier are lost. `together`: all nodes run `start` first, one after another in the
   * order of `nodes`; messages to nodes that have not started yet wait for them.
   */
  readonly begin: (typeof choices.begin)[number];
  /**
   * The commands that the application gives to each node, in order, each once and at any time. A crash does not undo
   * them.
   */
  readonly asks?: (node: NodeId) => readonly CommandOf<V>[];
  /** The commands that the application can give to a node in a given state, any number of times. Default: none. */
  readonly commands?: (state: StateOf<V>, self: NodeId) => readonly CommandOf<V>[];
  /** Whether a node in the given state accepts messages. Messages that it does not accept wait. Default: always. */
  readonly accepts?: (state: StateOf<V>, self: NodeId) => boolean;
  /**
   * The command that notifies every running node of a crash some time after it happens. It models a perfect failure
   * detector, which suspects exactly the crashed nodes. A pending notification counts as a message in flight. It is
   * withdrawn if the node recovers. Null: no notification.
   */
  readonly crashNotification?: (crashed: NodeId) => CommandOf<V> | null;
  /** When crash notifications arrive. Default: `any`. */
  readonly crashNotifications?: CrashNotificationTime;
  /** The maximum number of crashes. Default: 0. */
  readonly crashes?: number;
  /** The maximum number of restarts after a crash. Default: 0. */
  readonly recoveries?: number;
  /** The maximum number of lost messages. Default: 0. */
  readonly losses?: number;
  /**
   * The maximum number of pauses. While a node is paused, it takes no steps, but its timers keep running. Requires
   * `time.pauseMs`. Default: 0.
   */
  readonly pauses?: number;
  /**
   * Whether a node can crash within a step, just before any of its sends. Effects before that point take place; later
   * ones do not. By default, crashes happen only between steps.
   */
  readonly withinStep?: boolean;
  /** The maximum number of duplicated messages. A duplicated message is delivered and stays in flight. Default: 0. */
  readonly duplications?: number;
  /** The maximum number of faults of all kinds combined. Default: no additional limit. */
  readonly faults?: number;
  /** Whether a node's journal survives a crash. Default: `kept`. */
  readonly journal?: (typeof choices.journal)[number];
  /**
   * The maximum number of delays. Messages are delivered in one fixed order, except for at most this many delays. A
   * node receives everything in flight to it, in the order of `network`. Then the next node that has messages in flight
   * does the same. Skipping a node until its next turn counts as one delay (Emmi, Qadeer & Rakamarić, "Delay-Bounded
   * Scheduling", POPL 2011). A few delays are enough to find most bugs, even with many messages. Use this only with
   * properties of single states. Default: any order.
   */
  readonly delays?: number;
  /**
   * The maximum number of messages in flight. Runs that exceed it are cut off; if nothing is violated, the verdict is
   * then `unknown`.
   */
  readonly maxInFlight?: number;
  /**
   * The maximum number of timeouts. Runs that exceed it are cut off; if nothing is violated, the verdict is then
   * `unknown`.
   */
  readonly maxTimeouts?: number;
  /**
   * Names of counter fields (such as ballot rounds) that are only ever compared with each other and incremented. States
   * that differ only by shifting all of these fields, including those in journals and messages, by the same amount are
   * treated as equal, so a duel with ever-increasing rounds becomes a loop.
   */
  readonly counters?: readonly string[];
  /**
   * Names of round fields (such as lease rounds) that are only ever compared with each other and with numbers one or
   * two higher, checked for parity, and incremented. Gaps of more than three are reduced by multiples of two, so a node
   * that retries forever becomes a loop.
   */
  readonly rounds?: readonly string[];
}

const isText = (value: unknown): boolean => typeof value === "string";
/** Returns a rule that also accepts null. */
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
/** The rule for a number of faults. Infinity means no limit. */
const faults: Rule = {
  wanted: `${natural.wanted}, or Infinity`,
  accepts: (value) => value === Number.POSITIVE_INFINITY || natural.accepts(value),
};

/** The rules for the faults and bounds, which `SystemSpec` also has. */
export const modelLimits = {
  crashes: natural,
  recoveries: natural,
  losses: natural,
  duplications: natural,
  pauses: natural,
  faults,
  journal: oneOf(...choices.journal),
  withinStep: flag,
  maxInFlight: natural,
  maxTimeouts: natural,
};

/** The rules for `ModelOptions`. */
export const modelRules: Rules<ModelOptions<Vocabulary>> = {
  protocol: needed(protocol),
  properties,
  nodes: needed(nodes),
  network: needed(oneOf(...choices.network)),
  timers: needed(oneOf(...choices.timers)),
  time: fields,
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

const milliseconds: Rule = {
  wanted: "a finite number of 0 or more",
  accepts: (value) => Number.isFinite(value) && (value as number) >= 0,
};
const isDrift = (value: unknown): boolean => milliseconds.accepts(value) && (value as number) < 1;

/** The rules for `ModelOptions.time`. */
const timeRules: Rules<TimeBounds> = {
  unitMs: needed({
    wanted: "a finite number above 0",
    accepts: (value) => Number.isFinite(value) && (value as number) > 0,
  }),
  delayMs: needed({
    wanted: "a minimum and a maximum delay, both finite and 0 or more",
    accepts: (value) =>
      Array.isArray(value) && value.length === 2 && value.every(milliseconds.accepts) && value[0] <= value[1],
  }),
  drift: {
    wanted: "a number from 0 to below 1, or such a number per node",
    accepts: (value) => isDrift(value) || (isObject(value) && Object.values(value).every(isDrift)),
  },
  pauseMs: milliseconds,
};

/**
 * Checks the options of a model that depend on each other.
 * @throws UsageError if `timers: "timed"` and `time` are not used together, or with options that ignore time
 */
export function requireTime<V extends Vocabulary>(call: string, options: ModelOptions<V>): void {
  const { timers, time, pauses = 0, delays } = options;
  const refusal = (what: string, wanted: string, got: unknown): UsageError =>
    new UsageError("bad-option", unexpected(`${what} of ${call}()`, wanted, got));
  if (timers !== "timed") {
    if (time !== undefined) throw refusal("time", 'absent unless timers is "timed"', time);
    if (pauses > 0) throw refusal("pauses", '0 unless timers is "timed"', pauses);
    return;
  }
  if (time === undefined) throw refusal("time", 'the bounds on time, because timers is "timed"', time);
  requireOptions(call, time, timeRules, "time");
  if (delays !== undefined) throw refusal("delays", 'absent if timers is "timed"', delays);
}

/** Options for random runs. Exploration and shrinking ignore them, so one set of options works for all three. */
export const walkRules = {
  strategy: oneOf(...choices.strategy),
  seed: { wanted: "a whole number", accepts: Number.isSafeInteger },
  runs: natural,
  firstRun: natural,
  numbers: {
    wanted: "an iterable of run numbers",
    accepts: (value: unknown) => typeof value === "object" && value !== null && Symbol.iterator in value,
  },
  stepsPerRun: natural,
  bugDepth: natural,
};

/**
 * Budgets: how many more faults and timeouts a run may contain. They are numbers at the end of a state's tuple, one per
 * limit.
 */
/** All kinds of faults that have a budget. */
export const faultKinds = ["crashes", "recoveries", "losses", "duplications", "pauses"] as const;
export type FaultKind = (typeof faultKinds)[number];
/** A kind of event that a budget limits. */
export type Counted = FaultKind | "timeouts";

export interface Limits extends Readonly<Partial<Record<FaultKind, number>>> {
  /** The maximum number of faults of all kinds combined. */
  readonly faults?: number;
  readonly maxTimeouts?: number;
}

/** A run's remaining faults and timeouts, stored in the last elements of a tuple. */
export class Budgets {
  /** The number of budgets in the tuple. */
  readonly width: number;
  /** The budgets at the beginning of a run. */
  readonly full: readonly number[];
  /** For each kind, the indexes in the tuple of the budgets that it draws on. Null if the kind never occurs. */
  readonly #drawnOn: Readonly<Record<Counted, readonly number[] | null>>;

  /** @param at the index in the tuple where the budgets begin */
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
      pauses: drawnOn("pauses"),
      timeouts: limits.maxTimeouts === undefined ? [] : [open(limits.maxTimeouts)],
    };
    this.full = full;
    this.width = full.length;
  }

  /** Whether the kind can occur in any run. */
  has(kind: Counted): boolean {
    return this.#drawnOn[kind] !== null;
  }

  mayHappen(tuple: Int32Array, kind: Counted): boolean {
    const places = this.#drawnOn[kind];
    if (places === null) return false;
    for (let i = 0; i < places.length; i++) if ((tuple[places[i] as number] as number) <= 0) return false;
    return true;
  }

  /** Whether no more faults can happen and timeouts have no budget. */
  areSpent(tuple: Int32Array): boolean {
    return this.#drawnOn.timeouts?.length === 0 && !faultKinds.some((kind) => this.mayHappen(tuple, kind));
  }

  spend(tuple: Int32Array, kind: Counted): void {
    for (const place of this.#drawnOn[kind] ?? []) tuple[place] = (tuple[place] as number) - 1;
  }
}
