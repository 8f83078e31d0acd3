/** The options of Raft and their defaults. */
import type { NodeId } from "../../../core/protocol.ts";
import { list, natural, nullable, real, type Shape, struct } from "../../../core/shape.ts";
import { count, flag, nodeIds, type OptionsOf, option, optionTable, positive, whole } from "../../options.ts";
import { MAX_MEMBERS } from "../family/replicated-log.ts";

/** The maximum number of entries in a message, regardless of the options. It bounds the shape of `appendEntries`. */
export const MAX_BATCH_ENTRIES = 1_024;

const prioritiesShape: Shape<readonly { node: NodeId; behind: number }[]> = list(
  struct<{ node: NodeId; behind: number }>({ node: natural, behind: natural }),
  MAX_MEMBERS,
);

/** The option table for `raft()`. */
export const raftOptions = optionTable(
  "raft",
  {
    minElectionMs: positive(
      300,
      "the shortest random time that a follower waits for its leader before it becomes a candidate (§5.2)",
    ),
    maxElectionMs: positive(
      600,
      "the longest random time that a follower waits for its leader before it becomes a candidate",
    ),
    heartbeatMs: positive(75, "the leader's heartbeat interval, less than `minElectionMs`"),
    preVote: flag(true, "whether a node first asks if a majority would vote for it (thesis §9.6)"),
    checkQuorum: flag(
      true,
      "whether a leader that gets no answers from a majority steps down, and nodes in contact with a leader refuse to vote (thesis §6.2, §4.2.3)",
    ),
    checksLog: flag(
      true,
      "whether a node votes only for candidates whose log is at least as up to date as its own (§5.4.1); required for safety",
    ),
    leaseReads: flag(
      false,
      "whether a leader serves reads without a round of messages while its lease is valid (thesis §6.4.1); relies on clocks",
    ),
    drift: option(real, 0.05, "for `leaseReads`: the maximum relative error in the speed of a clock", {
      min: 0,
      below: 1,
    }),
    priorities: option(
      prioritiesShape,
      [],
      "`{ node, behind }`: the node waits longer before it becomes a candidate, by `behind` times the spread of election timeouts",
    ),
    handOverBeats: whole(
      0,
      "the leader transfers leadership to a voter with a smaller `behind` after the voter has kept up for this many heartbeats; 0 means never",
    ),
    catchUpRounds: whole(
      0,
      "the maximum number of rounds for new voters to catch up with the leader's log before they vote (thesis §4.2.1); 0 lets them vote at once",
    ),
    tellsCommit: flag(
      false,
      "whether followers learn the commit index at once, at the cost of N − 1 messages, instead of with the next entries or heartbeat",
    ),
    maxBatchEntries: count(64, "the maximum number of entries in one message", { max: MAX_BATCH_ENTRIES }),
    maxBatchChars: count(262_144, "the maximum number of characters in the entries of one message"),
    maxInFlight: count(8, "the maximum number of messages with entries in flight to one follower"),
    maxUncommitted: count(1_024, "the maximum number of uncommitted entries; a leader drops further proposals"),
    maxUncommittedChars: count(4_194_304, "the maximum number of characters in uncommitted entries"),
    maxWaiting: whole(
      64,
      "the maximum number of commands that wait at a node without a leader, and of reads that wait at any node",
    ),
    keptEntries: whole(
      64,
      "how many entries before the end of a snapshot stay in the log, for followers that are slightly behind",
    ),
    voters: option(
      nullable(nodeIds(MAX_MEMBERS)),
      null,
      "the voters of the first configuration; `null` means all nodes",
    ),
    learners: option(nodeIds(MAX_MEMBERS), [], "the learners of the first configuration"),
  },
  ({ minElectionMs, maxElectionMs, heartbeatMs, leaseReads, checkQuorum, voters, learners }, refuse) => {
    if (maxElectionMs < minElectionMs) refuse("maxElectionMs", `a number >= minElectionMs, which is ${minElectionMs}`);
    if (heartbeatMs >= minElectionMs) refuse("heartbeatMs", `a number below minElectionMs, which is ${minElectionMs}`);
    if (leaseReads && !checkQuorum) refuse("leaseReads", "false unless checkQuorum is true, because leases require it");
    if (voters?.length === 0) refuse("voters", "null or at least one node");
    if (learners.some((node) => voters?.includes(node))) refuse("learners", "nodes that are not voters");
  },
);

/** Options for `raft()`. */
export type RaftOptions = OptionsOf<typeof raftOptions>;

/** Returns the range, in milliseconds, of the random wait that follows the shortest election timeout. */
export function spread(
  { minElectionMs, maxElectionMs, priorities }: RaftOptions,
  self: NodeId,
): readonly [number, number] {
  const behind = behindOf(priorities, self);
  const spreadMs = maxElectionMs - minElectionMs;
  return [behind * spreadMs, (behind + 1) * spreadMs];
}

/**
 * Returns the node's priority: the number of additional spreads of the election timeout that it waits. 0 is the best.
 */
export const behindOf = (priorities: RaftOptions["priorities"], self: NodeId): number =>
  priorities.find(({ node }) => node === self)?.behind ?? 0;

/**
 * Returns the length of a lease. On the slowest clock it ends no later than the shortest election timeout on the
 * fastest clock.
 */
export const leaseMs = ({ minElectionMs, drift }: RaftOptions): number =>
  Math.floor((minElectionMs * (1 - drift)) / (1 + drift));
