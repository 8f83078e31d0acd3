/** What epoch-bully can be told, and what makes sense. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { boolean, list, natural, real, struct } from "../../../core/shape.ts";
import { boundMs, type LeaseOptions, requireLease } from "../../leases.ts";
import { requirePositive, settle } from "../../options.ts";

export interface EpochBullyOptions extends LeaseOptions {
  /** So long after it asked for it a leader is certain to lead alone. */
  leaseMs: number;
  /** After so long it asks anew. */
  renewMs: number;
  /** A round trip should be done by then, at first: a node that hears from less than a majority doubles it, up to `leaseMs`. */
  answerMs: number;
  /** Between these two a node waits at random before it calls an election, so that not all do at once. */
  minBackOffMs: number;
  maxBackOffMs: number;
  /** The rank at first of each node that has another than its id. Ties are broken by id. */
  ranks: readonly { node: NodeId; rank: number }[];
  /**
   * Whether a node asks first if a majority would have it. Safety does not need that: without it two messages less are sent
   * for each peer, but a node that cannot reach a majority drives epochs up, and nobody higher objects.
   */
  preVote: boolean;
  /** Whether a higher node takes over from a working leader, as in the book. Otherwise it waits until there is none. */
  takesOver: boolean;
  /** Whether nodes stand for election when they start. */
  stands: boolean;
}

/** A crash is made good within 0.7 s at worst: what is left of 443 ms, a back-off, one wait for the crashed one's answer. */
const defaults: EpochBullyOptions = {
  leaseMs: 400,
  renewMs: 100,
  drift: 0.05,
  answerMs: 60,
  minBackOffMs: 10,
  maxBackOffMs: 80,
  ranks: [],
  preVote: true,
  takesOver: true,
  stands: true,
};

const optionShape = struct<EpochBullyOptions>({
  leaseMs: real,
  renewMs: real,
  drift: real,
  answerMs: real,
  minBackOffMs: real,
  maxBackOffMs: real,
  ranks: list(struct<{ node: NodeId; rank: number }>({ node: natural, rank: real }), 1_000),
  preVote: boolean,
  takesOver: boolean,
  stands: boolean,
});

/** Votes take a round trip, and two writes to journals, which may take as long. */
export const VOTE_TRIPS = 2;

/** What follows from the options. */
export interface Timing {
  /** How long a node that votes or confirms is bound. */
  readonly boundsMs: number;
  readonly backOff: readonly [number, number];
  /** A node that lets a higher one go first gives it time for a back-off, a pre-vote and a vote. */
  readonly deferenceMs: number;
}

export const timing = ({ leaseMs, drift, answerMs, minBackOffMs, maxBackOffMs }: EpochBullyOptions): Timing => ({
  boundsMs: boundMs(leaseMs, drift),
  backOff: [minBackOffMs, maxBackOffMs],
  deferenceMs: maxBackOffMs + (1 + VOTE_TRIPS) * answerMs,
});

/** @throws UsageError */
export function settled(given: Partial<EpochBullyOptions> | undefined): EpochBullyOptions {
  const options = settle(defaults, optionShape, given, "epoch-bully");
  requireSense(options);
  return options;
}

function requireSense({ leaseMs, renewMs, drift, answerMs, minBackOffMs, maxBackOffMs }: EpochBullyOptions): void {
  requireLease("epoch-bully", { leaseMs, renewMs, drift });
  for (const [name, value] of Object.entries({ answerMs, minBackOffMs, maxBackOffMs }))
    requirePositive(`epoch-bully.${name}`, value);
  if (maxBackOffMs < minBackOffMs) {
    const wanted = `a number >= minBackOffMs, which is ${minBackOffMs}`;
    throw new UsageError("bad-option", unexpected("epoch-bully.maxBackOffMs", wanted, maxBackOffMs));
  }
}
