/** Bugs in Raft. Each one ignores a sentence of the paper. */
import type { Change } from "./seeded-bug.ts";

const RAFT = "src/protocols/consensus/raft";
const ELECTION = `${RAFT}/leader-election.ts`;
const STATES = `${RAFT}/server-states.ts`;
const TERMS = `${RAFT}/terms.ts`;
const SAFETY = `${RAFT}/safety.ts`;
const REPLICATION = `${RAFT}/log-replication.ts`;
const LOG = `${RAFT}/log.ts`;
const HEARTBEATS = `${RAFT}/heartbeats.ts`;
const COMPACTION = `${RAFT}/log-compaction.ts`;
const MEMBERS = `${RAFT}/membership-changes.ts`;

export const raftBounded: readonly Change[] = [
  {
    name: "forgets-its-vote",
    summary: "a vote is sent before it is journaled",
    file: STATES,
    find: `  ctx.persist({ type: "voted", term: state.term, votedFor: candidate });\n`,
    replace: ``,
    by: "bfs",
    setting: "elections with a crash",
    property: "terms of a log",
  },
  {
    name: "votes-twice",
    summary: "a node votes for every candidate in its term",
    file: ELECTION,
    find: `state.votedFor === null || state.votedFor === from;`,
    replace: `asked.term === state.term;`,
    by: "bfs",
    setting: "elections",
    property: "election safety",
  },
  {
    name: "log-not-checked",
    summary: "a node votes for a candidate whose log is older than its own",
    file: SAFETY,
    find: `return candidate.lastTerm > term || (candidate.lastTerm === term && candidate.lastIndex >= lastIndex(log));`,
    replace: `return candidate.lastTerm >= 0 && term >= 0;`,
    by: "random",
    setting: "a command and elections",
    property: "leader completeness",
  },
  {
    name: "conflict-not-truncated",
    summary: "a follower keeps entries that conflict with the leader's, and appends the leader's after them",
    file: REPLICATION,
    find: `    if (lastIndex(log) > last) truncate(state, last, ctx);\n`,
    replace: `    if (last < 0) truncate(state, last, ctx);\n`,
    by: "swarm",
    setting: "a command and elections",
    property: "log matching",
  },
];

/** Bugs that are found in virtual time. */
export const raft: readonly Change[] = [
  {
    name: "previous-entry-not-compared",
    summary: "a follower appends entries without comparing the preceding entry",
    file: REPLICATION,
    find: `previousIndex >= log.offset && found !== previousTerm`,
    replace: `previousIndex >= log.offset && found === null`,
    by: "simulator",
    setting: "commands in adversity",
    property: "log matching",
  },
  {
    name: "longer-log-wins",
    summary: "logs are compared by length, not first by last term",
    file: SAFETY,
    find: `return candidate.lastTerm > term || (candidate.lastTerm === term && candidate.lastIndex >= lastIndex(log));`,
    replace: `return candidate.lastIndex >= lastIndex(log) && term >= 0;`,
    by: "simulator",
    setting: "commands in adversity",
    property: "leader completeness",
  },
  {
    name: "heartbeat-commits",
    summary:
      "a heartbeat commits up to the leader's commit index, although the follower's log may differ from the leader's",
    file: HEARTBEATS,
    find: `const known = Math.min(commitIndex, follower.match);`,
    replace: `const known = Math.min(commitIndex, follower.next + commitIndex);`,
    by: "simulator",
    setting: "commands in adversity",
    property: "leader completeness",
  },
  {
    name: "snapshot-drops-the-tail",
    summary: "after a snapshot the journal contains only the snapshot, without the entries after it",
    file: COMPACTION,
    find: `    records.push({ type: "appended", entries });\n`,
    replace: `    if (at < 0) records.push({ type: "appended", entries });\n`,
    by: "simulator",
    setting: "snapshots in adversity",
    property: "log matching",
  },
  {
    name: "entries-not-journaled",
    summary: "a follower acknowledges entries that it has not journaled",
    file: LOG,
    find: `  ctx.persist({ type: "appended", entries });\n`,
    replace: ``,
    by: "simulator",
    setting: "commands in adversity",
    property: "log matching",
  },
  {
    name: "truncation-not-journaled",
    summary: "after a crash a follower has entries again that it had dropped",
    file: LOG,
    find: `  ctx.persist({ type: "truncated", lastIndex: index });\n`,
    replace: ``,
    by: "simulator",
    setting: "commands in adversity",
    property: "log matching",
  },
  {
    name: "new-voters-alone",
    summary: "during a joint configuration the new voters decide alone",
    file: MEMBERS,
    find: `return isMajority(voters, nodes) && (outgoing === null || isMajority(outgoing, nodes));`,
    replace: `return isMajority(voters, nodes) && (outgoing === null || outgoing.length > 0);`,
    by: "simulator",
    setting: "members change in adversity",
    property: "leader completeness",
  },
  {
    name: "change-within-a-change",
    summary:
      "a leader begins a change before it has committed an entry of its own term, and while another change is in progress",
    file: MEMBERS,
    find: `  if (commitIndex < firstIndex) return null;\n  if (configuration.outgoing !== null || configuration.index > commitIndex) return null;\n`,
    replace: `  if (commitIndex < 0 && firstIndex < 0) return null;\n`,
    by: "simulator",
    setting: "members change often",
    property: "configurations",
  },
];

export const raftWithLearners: readonly Change[] = [
  {
    name: "learners-counted",
    summary: "an entry is committed when a majority of voters and learners together has it",
    file: MEMBERS,
    find: `  const { voters, outgoing } = configuration;\n`,
    replace: `  const { outgoing } = configuration;\n  const voters = [...configuration.voters, ...configuration.learners];\n`,
    by: "simulator",
    setting: "learners in adversity",
    property: "leader completeness",
  },
];

export const raftInFigure8: readonly Change[] = [
  {
    name: "older-term-by-counting",
    summary: "an entry of an older term is committed as soon as a majority has it",
    file: SAFETY,
    find: ` && termAt(state.log, agreed) === state.term;`,
    replace: ` && termAt(state.log, agreed) !== null;`,
    by: "bfs",
    setting: "figure 8",
    property: "leader completeness",
  },
];

export const raftReads: readonly Change[] = [
  {
    name: "stale-read-index",
    summary: "a leader answers a read at once, without a round of messages that confirms its leadership",
    file: `${RAFT}/reads.ts`,
    find: `if (role.leaseRound !== null) return answer(`,
    replace: `if (role.round >= 0) return answer(`,
    by: "bfs",
    setting: "a read elsewhere",
    property: "reads",
  },
  {
    name: "read-confirmed-by-new-voters",
    summary: "during a joint configuration a majority of the new voters alone confirms a read",
    file: HEARTBEATS,
    find: `return isQuorum(configuration, [ctx.self, ...answered]);`,
    replace: `return isQuorum({ ...configuration, outgoing: null }, [ctx.self, ...answered]);`,
    by: "bfs",
    setting: "a read while a configuration is joint",
    property: "reads",
  },
];

export const raftSuccessions: readonly Change[] = [
  {
    name: "change-ends-before-it-is-joint",
    summary: "a leader ends a change of members before the joint configuration is committed",
    file: MEMBERS,
    find: `if (outgoing === null || index > commitIndex) return null;`,
    replace: `if (outgoing === null || index < 0 || commitIndex < 0) return null;`,
    by: "bfs",
    setting: "a change whose new voter leads",
    property: "configurations",
  },
  {
    name: "committed-by-new-voters",
    summary: "during a joint configuration an entry is committed when a majority of the new voters has it",
    file: MEMBERS,
    find: `return outgoing === null ? agreed(voters) : Math.min(agreed(voters), agreed(outgoing));`,
    replace: `return outgoing === null ? agreed(voters) : agreed(voters);`,
    by: "bfs",
    setting: "a change whose new voter leads",
    property: "leader completeness",
  },
  {
    name: "read-index-of-the-leader-before",
    summary: "a new leader answers a read by its commit index before it has committed an entry of its own term",
    file: `${RAFT}/reads.ts`,
    find: `Math.max(commitIndex, firstIndex);`,
    replace: `Math.max(commitIndex, firstIndex * 0);`,
    by: "bfs",
    setting: "a read of the next leader",
    property: "linearizable reads",
  },
  {
    name: "configuration-outlives-its-entry",
    summary: "a node that truncates its log keeps the configuration of the removed entries",
    file: LOG,
    find: `if (state.configuration.index > index) state`,
    replace: `if (state.configuration.index > index && index < 0) state`,
    by: "bfs",
    setting: "a change that is taken back",
    property: "configurations",
  },
];

export const raftOverConflicts: readonly Change[] = [
  {
    name: "conflicting-suffix-kept",
    summary: "a node that installs a snapshot keeps the entries after it, although they conflict with it",
    file: COMPACTION,
    find: `const rest = isInLog ? log.entries.slice(index - log.offset) : [];`,
    replace: `const rest = log.entries.slice(index - log.offset);`,
    by: "bfs",
    setting: "a snapshot over a conflict",
    property: "terms of a log",
  },
];

export const raftPreVotes: readonly Change[] = [
  {
    name: "pre-vote-with-a-side-effect",
    summary: "a node that answers a pre-vote adopts the term of the future election",
    file: TERMS,
    find: `  message.type === "requestPreVote" || (`,
    replace: `  (message.type === "requestPreVote" && message.term <= 0) || (`,
    by: "bfs",
    setting: "pre-votes",
    property: "terms begin with candidates",
  },
];

const withinALease = { by: "bfs", setting: "within a lease", property: "linearizable reads" } as const;

export const raftLeases: readonly Change[] = [
  {
    name: "promise-ends-with-the-term",
    summary: "a node that learns of a later term forgets the promise it gave its leader by answering a heartbeat",
    file: STATES,
    find: `hasHeard: hasPromised, incoming`,
    replace: `hasHeard: hasPromised && leader !== null, incoming`,
    ...withinALease,
  },
  {
    name: "term-before-promise",
    summary: "a node adopts the term of a vote request, and so votes, although it promised to follow its leader",
    file: TERMS,
    find: `!message.isTransfer && isLed(state, options)`,
    replace: `!message.isTransfer && message.term <= state.term && isLed(state, options)`,
    ...withinALease,
  },
  {
    name: "pre-vote-against-a-promise",
    summary: "a node votes for another candidate although it has just answered its leader",
    file: ELECTION,
    find: `role.is === "leader" ? checkQuorum : role.is === "follower" && role.hasHeard;`,
    replace: `role.is === "leader" && checkQuorum;`,
    ...withinALease,
  },
];

export const raftWithDrift: readonly Change[] = [
  {
    name: "lease-ignores-drift",
    summary:
      "a leader holds its lease for as long as its followers keep their promises, without a margin for clock drift",
    file: `${RAFT}/options.ts`,
    find: `Math.floor((minElectionMs * (1 - drift)) / (1 + drift));`,
    replace: `Math.floor(minElectionMs + drift * 0);`,
    by: "simulator",
    setting: "leases and clocks that drift",
    property: "linearizable reads",
  },
];
