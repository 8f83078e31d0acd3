/** What Raft can be told, and what makes sense. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { boolean, list, natural, nullable, real, struct } from "../../../core/shape.ts";
import { requirePositive, settle } from "../../options.ts";
import { MAX_MEMBERS } from "../family/replicated-log.ts";

export interface RaftOptions {
  /** §5.2: between these two a follower waits at random for its leader before it is a candidate. */
  minElectionMs: number;
  maxElectionMs: number;
  /** A leader sends a heartbeat that often. */
  heartbeatMs: number;
  /** Thesis §9.6: whether a node asks first if a majority would vote for it. */
  preVote: boolean;
  /** Thesis §6.2 and §4.2.3: a leader that no majority answers steps down; who hears from a leader helps nobody else to lead. */
  checkQuorum: boolean;
  /** §5.4.1: whether a node votes only for a log that is as up to date as its own. Safety rests on it. */
  checksLog: boolean;
  /** Thesis §6.4.1: whether a leader serves reads without a round of messages while it is certain to lead. Rests on clocks. */
  leaseReads: boolean;
  /** By how much the speed of clocks may differ from the right one, as a share of it. For `leaseReads`. */
  drift: number;
  /** Nodes that stand behind others: they wait so many spreads of time-outs longer before they are candidates. */
  priorities: readonly { node: NodeId; behind: number }[];
  /**
   * When a voter that stands before the leader in `priorities` has kept up with it for so many heartbeats, leadership is handed to
   * it. 0: never.
   */
  handOverBeats: number;
  /**
   * Thesis §4.2.1: before nodes become voters their logs are brought up to the leader's, in so many rounds at most; who needs more is
   * refused. 0: they are voters at once.
   */
  catchUpRounds: number;
  /** Whether followers are told at once what is committed, and not with the next entries or heartbeat: N − 1 messages more. */
  tellsCommit: boolean;
  /** What one message holds at most. */
  maxBatchEntries: number;
  maxBatchChars: number;
  /** How many such messages are on their way to one follower at most. */
  maxInFlight: number;
  /** A leader drops what is proposed when so much is not committed. */
  maxUncommitted: number;
  maxUncommittedChars: number;
  /** How many commands wait at a node that knows no leader, and how many reads wait at a node. */
  maxWaiting: number;
  /** §7: how much of a snapshot one message holds; the next is sent when it has been received. */
  maxChunkChars: number;
  /** So many entries before a snapshot's end stay in the log, for followers that are a little behind. */
  keptEntries: number;
  /** The first configuration. Null: all nodes vote. */
  voters: readonly NodeId[] | null;
  learners: readonly NodeId[];
}

const defaults: RaftOptions = {
  minElectionMs: 300,
  maxElectionMs: 600,
  heartbeatMs: 75,
  preVote: true,
  checkQuorum: true,
  checksLog: true,
  leaseReads: false,
  drift: 0.05,
  priorities: [],
  handOverBeats: 0,
  catchUpRounds: 0,
  tellsCommit: false,
  maxBatchEntries: 64,
  maxBatchChars: 262_144,
  maxInFlight: 8,
  maxUncommitted: 1_024,
  maxUncommittedChars: 4_194_304,
  maxWaiting: 64,
  maxChunkChars: 65_536,
  keptEntries: 64,
  voters: null,
  learners: [],
};

/** What a message may hold, whatever the options: the bounds of its shape. */
export const MAX_BATCH_ENTRIES = 1_024;
export const MAX_CHUNK_CHARS = 262_144;

const optionShape = struct<RaftOptions>({
  minElectionMs: real,
  maxElectionMs: real,
  heartbeatMs: real,
  preVote: boolean,
  checkQuorum: boolean,
  checksLog: boolean,
  leaseReads: boolean,
  drift: real,
  priorities: list(struct<{ node: NodeId; behind: number }>({ node: natural, behind: natural }), MAX_MEMBERS),
  handOverBeats: natural,
  catchUpRounds: natural,
  tellsCommit: boolean,
  maxBatchEntries: natural,
  maxBatchChars: natural,
  maxInFlight: natural,
  maxUncommitted: natural,
  maxUncommittedChars: natural,
  maxWaiting: natural,
  maxChunkChars: natural,
  keptEntries: natural,
  voters: nullable(list(natural, MAX_MEMBERS)),
  learners: list(natural, MAX_MEMBERS),
});

/** @throws UsageError */
export function settled(given: Partial<RaftOptions> | undefined): RaftOptions {
  const options = settle(defaults, optionShape, given, "raft");
  const { minElectionMs, maxElectionMs, heartbeatMs, maxBatchEntries, maxChunkChars, drift, voters } = options;
  for (const name of positive) requirePositive(`raft.${name}`, options[name]);
  const refuse = (name: keyof RaftOptions, wanted: string): never => {
    throw new UsageError("bad-option", unexpected(`raft.${name}`, wanted, options[name]));
  };
  if (maxElectionMs < minElectionMs) refuse("maxElectionMs", `a number >= minElectionMs, which is ${minElectionMs}`);
  if (heartbeatMs >= minElectionMs) refuse("heartbeatMs", `a number below minElectionMs, which is ${minElectionMs}`);
  if (maxBatchEntries > MAX_BATCH_ENTRIES) refuse("maxBatchEntries", `at most ${MAX_BATCH_ENTRIES}`);
  if (maxChunkChars > MAX_CHUNK_CHARS) refuse("maxChunkChars", `at most ${MAX_CHUNK_CHARS}`);
  if (!(drift >= 0 && drift < 1)) refuse("drift", "a number from 0 up to, not including, 1");
  if (options.leaseReads && !options.checkQuorum) refuse("leaseReads", "false where checkQuorum is: leases rest on it");
  if (voters?.length === 0) refuse("voters", "null or at least one node");
  if (voters !== null && options.learners.some((node) => voters.includes(node)))
    refuse("learners", "nodes that are not voters");
  return options;
}

const positive = [
  "minElectionMs",
  "maxElectionMs",
  "heartbeatMs",
  "maxBatchEntries",
  "maxBatchChars",
  "maxInFlight",
  "maxUncommitted",
  "maxUncommittedChars",
  "maxChunkChars",
] as const;

/** How long a node waits, beyond the least election time-out, before it is a candidate. */
export function spread(
  { minElectionMs, maxElectionMs, priorities }: RaftOptions,
  self: NodeId,
): readonly [number, number] {
  const behind = behindOf(priorities, self);
  const spreadMs = maxElectionMs - minElectionMs;
  return [behind * spreadMs, (behind + 1) * spreadMs];
}

/** 0: nobody stands before it. */
export const behindOf = (priorities: RaftOptions["priorities"], self: NodeId): number =>
  priorities.find(({ node }) => node === self)?.behind ?? 0;

/** A lease on the slowest clock ends no later than the least election time-out on the fastest. */
export const leaseMs = ({ minElectionMs, drift }: RaftOptions): number =>
  Math.floor((minElectionMs * (1 - drift)) / (1 + drift));
