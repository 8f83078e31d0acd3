/** What Multi-Paxos can be told, and what makes sense. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { boolean, list, natural, oneOf, real, struct } from "../../../core/shape.ts";
import { boundMs, type LeaseOptions, requireLease } from "../../leases.ts";
import { requirePositive, settle } from "../../options.ts";
import { MAX_MEMBERS } from "../family/replicated-log.ts";

export interface MultiPaxosOptions extends LeaseOptions {
  /** So long after a heartbeat that a majority confirms, nobody else is helped to lead. A leader that cannot renew that steps down. */
  leaseMs: number;
  /** Between heartbeats. What has not been accepted by the next is sent again. */
  renewMs: number;
  /** A candidate asks again after so long, or up to twice as long. */
  answerMs: number;
  /** Between these two a node waits at random before it stands for election, so that not all do at once. */
  minBackOffMs: number;
  maxBackOffMs: number;
  /** So many slots beyond the decided ones may be proposed; so many slots after it was decided a new membership is in effect. */
  window: number;
  /** So many decided slots are kept behind a snapshot, for nodes that lag a little. */
  keep: number;
  /** Commands that wait at a node, and reads; what is more is dropped, and its client asks again. */
  maxWaiting: number;
  /** Whether a leader serves reads while it has its lease, which rests on clocks, or asks a majority each time. */
  reads: "confirmed" | "lease";
  /** Whether a decision of which no further proposal would tell is told at once, or with the next heartbeat. */
  announces: boolean;
  /** Who votes at first, and who is only told; no voters: all do that are not learners. */
  voters: readonly NodeId[];
  learners: readonly NodeId[];
}

export const defaults: MultiPaxosOptions = {
  leaseMs: 400,
  renewMs: 100,
  drift: 0.05,
  answerMs: 60,
  minBackOffMs: 10,
  maxBackOffMs: 150,
  window: 16,
  keep: 64,
  maxWaiting: 1_000,
  reads: "confirmed",
  announces: true,
  voters: [],
  learners: [],
};

export const optionFields = {
  leaseMs: real,
  renewMs: real,
  drift: real,
  answerMs: real,
  minBackOffMs: real,
  maxBackOffMs: real,
  window: natural,
  keep: natural,
  maxWaiting: natural,
  reads: oneOf("confirmed", "lease"),
  announces: boolean,
  voters: list(natural, MAX_MEMBERS),
  learners: list(natural, MAX_MEMBERS),
};

const optionShape = struct<MultiPaxosOptions>(optionFields);

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
  return settings("multi-paxos", settle(defaults, optionShape, given, "multi-paxos"), 0);
}

/** @throws UsageError */
export function settings(owner: string, options: MultiPaxosOptions, suspectAfter: number): Settings {
  const { leaseMs, renewMs, drift, answerMs, minBackOffMs, maxBackOffMs, window, maxWaiting } = options;
  requireLease(owner, { leaseMs, renewMs, drift });
  for (const [name, value] of Object.entries({ answerMs, minBackOffMs, maxBackOffMs, window, maxWaiting }))
    requirePositive(`${owner}.${name}`, value);
  if (maxBackOffMs < minBackOffMs) {
    const wanted = `a number >= minBackOffMs, which is ${minBackOffMs}`;
    throw new UsageError("bad-option", unexpected(`${owner}.maxBackOffMs`, wanted, maxBackOffMs));
  }
  return {
    ...options,
    boundsMs: boundMs(leaseMs, drift),
    backOff: [minBackOffMs, maxBackOffMs],
    tail: TAIL_WINDOWS * window,
    suspectAfter,
  };
}
