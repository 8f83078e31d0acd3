/** The options of the checker: the parts of a checked system and its faults. A misspelt bound would be ignored, so each call checks them. */
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

/** The values of options that have few. */
export const choices = {
  network: ["fifo", "inbox", "bag"],
  timers: ["free", "quiet", "rounds", "never"],
  begin: ["idle", "down", "together"],
  crashNotifications: ["any", "last"],
  journal: ["kept", "lost"],
  strategy: ["random", "pct", "swarm"],
} as const;

export type TimerMode = (typeof choices.timers)[number];

/**
 * When a node is told of a crash. `any`: at any time, even before a message that the crashed node sent. `last`: when
 * nothing from the crashed node is on its way to it any more, as where delay is bounded and the detector waits longer.
 */
export type CrashNotificationTime = (typeof choices.crashNotifications)[number];

export interface ModelOptions<V extends Vocabulary> {
  readonly protocol: Protocol<V>;
  /** What to check; the protocol's own properties by default. What they remember of nodes is a part of their states. */
  readonly properties?: readonly Property<V>[];
  readonly nodes: readonly NodeId[];
  readonly network: NetworkKind;
  /**
   * `free`: an armed timer may run out at any time. `quiet`: only when no message is on its way. So it is
   * where timers are longer than anything that a message sets going; two timers that race with each other, or with an
   * exchange that is longer than they are, are left out. `rounds`: those of all nodes run out together, and only when no
   * message is on its way, as where a synchronous round ends for everybody at the same time. `never`: retrying and giving up come after all this.
   */
  readonly timers: TimerMode;
  /**
   * `idle`: every node is up and has not run `start`. `down`: every node starts when it likes, and what is sent to it
   * before is lost. `together`: all run `start` before anything else happens, one after the other in the order of
   * `nodes`; what is sent to those whose turn has not come waits for them.
   */
  readonly begin: (typeof choices.begin)[number];
  /**
   * What each node is asked by the application: one command after the other, each once and at any time. A crash does
   * not take back what was asked.
   */
  readonly asks?: (node: NodeId) => readonly CommandOf<V>[];
  /** The commands that the application may give in a state, as often as it likes. None by default. */
  readonly commands?: (state: StateOf<V>, self: NodeId) => readonly CommandOf<V>[];
  /** Whether a node in that state takes messages; what it does not take waits. Always by default. */
  readonly accepts?: (state: StateOf<V>, self: NodeId) => boolean;
  /**
   * What every node that is up is told, some time after a node has crashed: a detector that suspects nobody else and
   * misses nobody. A notification counts as a message on its way. It is withdrawn when the node starts again. Null: nothing.
   */
  readonly crashNotification?: (crashed: NodeId) => CommandOf<V> | null;
  /** `any` by default. */
  readonly crashNotifications?: CrashNotificationTime;
  /** How many crashes, recoveries, losses and duplications of messages there may be. None by default. */
  readonly crashes?: number;
  readonly recoveries?: number;
  readonly losses?: number;
  /**
   * Whether a crash may strike within a step, just before any of its sends: what comes before is done, the rest
   * never is. Left out, it strikes between steps.
   */
  readonly withinStep?: boolean;
  /** A duplicated message is delivered and stays on its way. */
  readonly duplications?: number;
  /** How many of these together. No limit of its own by default. */
  readonly faults?: number;
  /** What a crash leaves of a node's journal: all of it by default. */
  readonly journal?: (typeof choices.journal)[number];
  /**
   * Deliveries in one order, but for so many times: a node takes all that is on its way to it, in the order of `network`, then it
   * is the turn of the next node to which something is on its way. Passing one over, whose turn comes again later, counts as one
   * delay (Emmi, Qadeer & Rakamarić, "Delay-Bounded Scheduling", POPL 2011). Few are enough to find most bugs, and
   * many messages are no obstacle any more. With properties of single states only. No order by default.
   */
  readonly delays?: number;
  /** Runs with more messages on their way are cut off: where nothing was violated, the verdict is `unknown`. */
  readonly maxInFlight?: number;
  /** Runs with more time-outs are cut off, likewise. */
  readonly maxTimeouts?: number;
  /**
   * Fields that hold numbers which are compared with each other and counted up, and never looked at otherwise, such as
   * the rounds of ballots. States that differ by a shift of all these fields, wherever they stand in states, journals and
   * messages, are taken for one: so a duel whose rounds grow for ever comes back to where it was.
   */
  readonly counters?: readonly string[];
  /**
   * Fields that hold numbers which are compared with each other and with those one or two above, told apart as even and
   * odd, counted up, and never looked at otherwise, such as the rounds of leases. Of two that follow each other by more
   * than three it is forgotten how much more, by twos: so who asks anew for ever comes back to where it was.
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

/** Options of random runs. Explorations and shrinking ignore them, so that one system serves all. */
export const walkRules = {
  strategy: oneOf(...choices.strategy),
  seed: { wanted: "a whole number", accepts: Number.isSafeInteger },
  runs: natural,
  firstRun: natural,
  numbers: {
    wanted: "numbers of runs that can be gone through",
    accepts: (value: unknown) => typeof value === "object" && value !== null && Symbol.iterator in value,
  },
  stepsPerRun: natural,
  bugDepth: natural,
};

/** How much more may go wrong in a run: a few numbers at the end of a state's tuple, one for each limit that counts. */
/** What is counted. All but time-outs are faults. */
export const faultKinds = ["crashes", "recoveries", "losses", "duplications"] as const;
export type FaultKind = (typeof faultKinds)[number];
export type Counted = FaultKind | "timeouts";

export interface Limits extends Readonly<Partial<Record<FaultKind, number>>> {
  /** How many faults of all kinds together. */
  readonly faults?: number;
  readonly maxTimeouts?: number;
}

export class Budgets {
  /** How many numbers of the tuple are budgets. */
  readonly width: number;
  /** At the beginning of a run. */
  readonly full: readonly number[];
  /** The budgets that each kind draws on, by their place in the tuple. Null: it never happens. */
  readonly #drawnOn: Readonly<Record<Counted, readonly number[] | null>>;

  /** @param at where in a tuple the budgets begin */
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

  /** Whether no fault can happen any more, and nothing else is counted. */
  areSpent(tuple: Int32Array): boolean {
    return this.#drawnOn.timeouts?.length === 0 && !faultKinds.some((kind) => this.mayHappen(tuple, kind));
  }

  spend(tuple: Int32Array, kind: Counted): void {
    for (const place of this.#drawnOn[kind] ?? []) tuple[place] = (tuple[place] as number) - 1;
  }
}
