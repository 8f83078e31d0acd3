/** The options of epoch-bully, and the times derived from them. */
import { boundMs, leaseOptions, requireLease } from "../../leases.ts";
import { flag, type OptionsOf, optionTable, positive } from "../../options.ts";
import { ranksOption } from "../parts/ranks.ts";

/** A crash is made good within 0.7 s at worst: what is left of 443 ms, a back-off, one wait for the crashed one's answer. */
export const epochBullyOptions = optionTable(
  "epoch-bully",
  {
    ...leaseOptions(400, 100),
    answerMs: positive(
      60,
      "the time of a round trip at first; a node that gets too few answers in time doubles it, up to `leaseMs`",
    ),
    minBackOffMs: positive(10, "the least random wait before a node calls an election"),
    maxBackOffMs: positive(80, "the longest random wait before a node calls an election"),
    ranks: ranksOption,
    preVote: flag(
      true,
      "whether a node first asks if a majority would vote for it; without, two messages fewer for each peer, but a node that cannot reach a majority raises epochs",
    ),
    takesOver: flag(true, "whether a higher node takes over from a working leader, as in the book"),
    stands: flag(true, "whether nodes become candidates when they start"),
  },
  (options, refuse) => {
    requireLease(options, refuse);
    const { minBackOffMs, maxBackOffMs } = options;
    if (maxBackOffMs < minBackOffMs) refuse("maxBackOffMs", `a number >= minBackOffMs, which is ${minBackOffMs}`);
  },
);

export type EpochBullyOptions = OptionsOf<typeof epochBullyOptions>;

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
