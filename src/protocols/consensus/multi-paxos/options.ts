/** The options of Multi-Paxos, and the settings derived from them. */
import { oneOf } from "../../../core/shape.ts";
import { boundMs, leaseOptions, requireLease } from "../../leases.ts";
import {
  count,
  flag,
  nodeIds,
  type OptionsOf,
  option,
  optionTable,
  positive,
  type Refuse,
  type ValuesOf,
  whole,
} from "../../options.ts";
import { MAX_MEMBERS } from "../family/replicated-log.ts";

/** The options that Cheap Paxos has, too. */
export const paceOptions = {
  ...leaseOptions(400, 100),
  answerMs: positive(60, "a candidate asks again after this time, up to twice as long"),
  minBackOffMs: positive(10, "the least random wait before a node becomes a candidate"),
  maxBackOffMs: positive(150, "the longest random wait before a node becomes a candidate"),
  window: count(
    16,
    "how many slots beyond the decided ones may be proposed, and how many slots later a new membership takes effect",
  ),
  keep: whole(64, "how many decided slots are kept behind a snapshot, for nodes that lag a little"),
  maxWaiting: count(
    1_000,
    "how many commands and reads wait at a node; further ones are dropped, and the client asks again",
  ),
  reads: option(
    oneOf("confirmed", "lease"),
    "confirmed",
    "a leader asks a majority before each read, or relies on its lease and so on clocks",
  ),
  announces: flag(
    true,
    "whether a decision is sent at once if no further proposal would carry it, or with the next heartbeat",
  ),
};

type PaceOptions = ValuesOf<typeof paceOptions>;

/** @throws UsageError */
export function requirePace(options: PaceOptions, refuse: Refuse<PaceOptions>): void {
  requireLease(options, refuse);
  const { minBackOffMs, maxBackOffMs } = options;
  if (maxBackOffMs < minBackOffMs) refuse("maxBackOffMs", `a number >= minBackOffMs, which is ${minBackOffMs}`);
}

const multiPaxosOptions = optionTable(
  "multi-paxos",
  {
    ...paceOptions,
    voters: option(nodeIds(MAX_MEMBERS), [], "the nodes that vote at first; empty: all that are not learners"),
    learners: option(nodeIds(MAX_MEMBERS), [], "the nodes that learn decisions and do not vote at first"),
  },
  requirePace,
);

export type MultiPaxosOptions = OptionsOf<typeof multiPaxosOptions>;

/** The options, and what follows from them. */
export interface Settings extends MultiPaxosOptions {
  /** How long a node that promises or confirms is bound. */
  readonly boundsMs: number;
  readonly backOff: readonly [number, number];
  /** An acceptor takes nothing that is so far beyond what it knows to be decided: first it catches up. */
  readonly tail: number;
  /** After so many heartbeats that it has not confirmed a main node counts as failed; 0: never. */
  readonly suspectAfter: number;
}

/** As far as the window can be from what the slowest of a quorum knows, with a reconfiguration on top. */
const TAIL_WINDOWS = 4;

/** @throws UsageError */
export function settled(given: Partial<MultiPaxosOptions> | undefined): Settings {
  return settings(multiPaxosOptions.settle(given), 0);
}

export function settings(options: MultiPaxosOptions, suspectAfter: number): Settings {
  const { leaseMs, drift, minBackOffMs, maxBackOffMs, window } = options;
  return {
    ...options,
    boundsMs: boundMs(leaseMs, drift),
    backOff: [minBackOffMs, maxBackOffMs],
    tail: TAIL_WINDOWS * window,
    suspectAfter,
  };
}
