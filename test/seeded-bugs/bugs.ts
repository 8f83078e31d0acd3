/** Bugs seeded into the shipped protocols, and the search that should find each one. Plain data. */

import { agreementBugs } from "./agreement.ts";
import { fastPaxos, generalizedPaxos } from "./fast.ts";
import { hardened } from "./hardened.ts";
import {
  cheapPaxosBugs,
  multiPaxosAlone,
  multiPaxosBugs,
  multiPaxosWithMembers,
  multiPaxosWithTwoBallots,
} from "./multi-paxos.ts";
import { pbftBesideForgers, pbftBugs } from "./pbft.ts";
import {
  raft,
  raftBounded,
  raftInFigure8,
  raftLeases,
  raftOverConflicts,
  raftPreVotes,
  raftReads,
  raftSuccessions,
  raftWithDrift,
  raftWithLearners,
} from "./raft.ts";
import { type Change, foundBy, type SeededBug, type Subject } from "./seeded-bug.ts";
import { twoPhaseCommitBugs } from "./two-phase-commit.ts";

const CR = "src/protocols/election/chang-roberts/extended-chang-roberts.ts";
const RA = "src/protocols/mutex/ricart-agrawala/ricart-agrawala.ts";
const GROUP = "src/protocols/multicast/parts/group.ts";
const CAUSAL = "src/protocols/multicast/causal.ts";
const BULLY = "src/protocols/election/bully/bully.ts";

/** @param file the file that contains the bug, unless the change names a different one */
const inFile = (change: Omit<Change, "file"> & { file?: string }, protocol: Subject, file: string): SeededBug => ({
  file,
  ...change,
  protocol,
});

const extendedChangRoberts: readonly SeededBug[] = [
  {
    name: "lower-id-passes",
    summary: "a node that is not a participant yet passes on a lower id instead of its own",
    find: `if (state.part === "non-participant") forward(state, own, ctx);`,
    replace: `if (state.part === "non-participant") forward(state, candidate, ctx);`,
    ...foundBy("bfs", "ring of four", "E1 safety"),
  },
  {
    name: "stays-participant",
    summary: "a node that elected a leader still considers itself a participant",
    find: `state.part = "non-participant";\n    state.elected = leader;`,
    replace: `state.elected = leader;`,
    ...foundBy("dfs", "ring of four", "E2 liveness"),
  },
  {
    name: "announcement-stops-early",
    summary: "the announcement stops at the first node below the winner: `>=` for `===`",
    find: `if (round < state.round || (round === state.round && state.elected !== null)) return; // It has gone around.`,
    replace: `if (id >= ctx.self) return;`,
    ...foundBy("simulator", "ring of six", "E2 liveness"),
  },
  {
    name: "ring-not-closed",
    summary: "the last node of the ring is its own neighbor",
    find: `const next = neighbour(self, peers, 1);`,
    replace: `const next = peers.find((peer) => peer > self) ?? self;`,
    ...foundBy("random", "ring of four", "E2 liveness"),
  },
].map((bug) => inFile(bug as Change, "chang-roberts", CR));

const ricartAgrawala: readonly SeededBug[] = [
  {
    name: "ties-both-ways",
    summary: "equal stamps are not ordered by id: both nodes answer",
    find: `precedes({ time: section.time, node: self }, request)`,
    replace: `section.time < request.time`,
    ...foundBy("bfs", "one entry each", "ME3 ordering"),
  },
  {
    name: "ties-neither-way",
    summary: "equal stamps are not ordered by id: neither node answers",
    find: `precedes({ time: section.time, node: self }, request)`,
    replace: `section.time <= request.time`,
    ...foundBy("bfs", "one entry each", "ME2 liveness"),
  },
  {
    name: "inside-answers",
    summary: "a node in the critical section does not defer requests: a missing guard",
    find: `section.is === "held" || (section.is === "wanted" && precedes({ time: section.time, node: self }, request));`,
    replace: `section.is === "wanted" && precedes({ time: section.time, node: self }, request);`,
    ...foundBy("pct", "one entry each", "ME1 safety"),
  },
  {
    name: "deferred-not-forgotten",
    summary: "deferred requests are not cleared on exit: the node answers them again next time",
    find: `state.deferred = [];\n`,
    replace: ``,
    ...foundBy("random", "three entries each", "ME3 ordering"),
  },
  {
    name: "clock-ignores-requests",
    summary: "a request does not advance the receiver's clock",
    find: `request(state, from, { time }, ctx) {\n        state.clock = tick(state.clock, time);`,
    replace: `request(state, from, { time }, ctx) {\n        state.clock = tick(state.clock);`,
    ...foundBy("simulator", "two entries each", "ME3 ordering"),
  },
  {
    name: "one-reply-short",
    summary: "a node enters when one reply is still missing",
    find: `!section.awaited.every((node) => state.suspected.includes(node))`,
    replace: `section.awaited.filter((node) => !state.suspected.includes(node)).length > 1`,
    ...foundBy("simulator", "two entries each", "ME3 ordering"),
  },
  {
    name: "answers-one",
    summary: "on exit a node answers only the first deferred request",
    find: `for (const waiting of state.deferred) ctx`,
    replace: `for (const waiting of state.deferred.slice(0, 1)) ctx`,
    ...foundBy("simulator", "two entries each", "ME2 liveness"),
  },
  {
    name: "last-come-first",
    summary: "the request with the later stamp goes first",
    find: `precedes({ time: section.time, node: self }, request)`,
    replace: `precedes(request, { time: section.time, node: self })`,
    ...foundBy("bfs", "one entry each", "ME3 ordering"),
  },
].map((bug) => inFile(bug as Change, "ricart-agrawala", RA));

const causal: readonly SeededBug[] = [
  {
    name: "others-not-awaited",
    summary: "only the order of each sender is kept: the counters of other senders are not compared",
    find: `: (message.vector[k] ?? 0) <= (state.vector[k] ?? 0),`,
    replace: `: true,`,
    ...foundBy("simulator", "two messages each", "workload: C5 happened-before order"),
  },
  {
    name: "gaps-allowed",
    summary: "a sender's message need not be its next one: `>` for `=== … + 1`",
    find: `number(state, message) === deliveredOf(state, member) + 1`,
    replace: `number(state, message) > deliveredOf(state, member)`,
    ...foundBy("bfs", "two messages and one", "workload: C5 happened-before order"),
  },
  {
    name: "duplicates-kept",
    summary: "a duplicate is held back forever: `<` for `<=`",
    find: `number(state, message) <= deliveredOf(state, message.from) ||`,
    replace: `number(state, message) < deliveredOf(state, message.from) ||`,
    ...foundBy("bfs", "links that duplicate", "agreement"),
  },
  {
    name: "queue-not-searched-again",
    summary: "after a delivery, the messages that waited for it are not checked again",
    file: GROUP,
    find: `next = heldBack.find(isNext)) {`,
    replace: `next = undefined) {`,
    ...foundBy("bfs", "one message each", "agreement"),
  },
  {
    name: "stays-in-queue",
    summary: "delivered messages stay in the hold-back queue",
    file: GROUP,
    find: `heldBack.splice(heldBack.indexOf(next), 1);`,
    replace: ``,
    ...foundBy("bfs", "one message each", "agreement"),
  },
].map((bug) => inFile(bug as Change, "causal", CAUSAL));

const bully: readonly SeededBug[] = [
  {
    name: "one-silent-is-enough",
    summary: "a node considers itself the highest when one higher node is suspected, not all: `some` for `every`",
    find: `.every((rival) => suspected.includes(rival));`,
    replace: `.some((rival) => suspected.includes(rival));`,
    ...foundBy("swarm", "election with a crash", "E1 safety"),
  },
  {
    name: "waits-forever",
    summary: "a node does not call another election when the node that answered it falls silent",
    find: `coordinator: startElection, // The node`,
    replace: `coordinator: (state) => void (state.phase = "idle"), // The node`,
    ...foundBy("dfs", "election with a crash", "E2 liveness"),
  },
].map((bug) => inFile(bug as Change, "bully", BULLY));

const paxos: readonly SeededBug[] = [
  {
    name: "own-value-always",
    summary: "a proposer proposes its own value regardless of the promises",
    find: `highest?.value ?? proposer.value`,
    replace: `proposer.value`,
    ...foundBy("bfs", "duel", "agreement"),
  },
  {
    name: "lowest-accepted",
    summary: "a proposer takes the value of the lowest ballot among the promises",
    find: `(b !== null && isBelow(a.ballot, b.ballot)) ? b : a`,
    replace: `(b !== null && isBelow(b.ballot, a.ballot)) ? b : a`,
    ...foundBy("swarm", "duel of three", "agreement"),
  },
  {
    name: "accepts-stale",
    summary: "an acceptor accepts below its promise: a missing guard",
    find: `|| decline(state, from, proposal.ballot, ctx)`,
    replace: ``,
    ...foundBy("pct", "duel", "agreement"),
  },
  {
    name: "promises-stale",
    summary: "an acceptor replaces a higher promise by a lower one: a missing guard",
    find: `|| decline(state, from, ballot, ctx)`,
    replace: ``,
    ...foundBy("bfs", "duel", "agreement"),
  },
  {
    name: "promise-not-journaled",
    summary: "a promise is sent before it is journaled",
    find: `ctx.persist({ type: "promised", ballot });`,
    replace: ``,
    ...foundBy("random", "duel with a crash", "agreement"),
  },
  {
    name: "acceptance-not-journaled",
    summary: "an acceptance is sent before it is journaled",
    find: `ctx.persist({ type: "accepted", proposal });`,
    replace: ``,
    ...foundBy("bfs", "duel with a crash", "agreement"),
  },
  {
    name: "acceptance-not-replayed",
    summary: "after a crash the acceptor knows its promise but not its accepted value",
    find: `state.round = proposal.ballot.round;\n    state.accepted = proposal;`,
    replace: `state.round = proposal.ballot.round;`,
    ...foundBy("bfs", "duel with a crash", "agreement"),
  },
  {
    name: "decision-not-journaled",
    summary: "a decision is not journaled: after a crash the node decides again",
    find: `ctx.persist({ type: "decided", value });`,
    replace: ``,
    ...foundBy("bfs", "duel with a crash", "integrity"),
  },
  {
    name: "rounds-alone",
    summary: "ballots of one round are not ordered by node",
    find: `a.round < b.round || (a.round === b.round && a.node < b.node)`,
    replace: `a.round < b.round`,
    ...foundBy("random", "duel", "agreement"),
  },
  {
    name: "same-round-same-ballot",
    summary: "ballots of one round count as one",
    find: `a.round === b.round && a.node === b.node;`,
    replace: `a.round === b.round;`,
    ...foundBy("bfs", "duel", "agreement"),
  },
  {
    name: "any-acceptances",
    summary: "a learner counts acceptances of different ballots together",
    find: `.filter(([, { ballot }]) => isSame(ballot, proposal.ballot))`,
    replace: ``,
    ...foundBy("simulator", "duel of three", "agreement"),
  },
  {
    name: "half-is-enough",
    summary: "a node counts a quorum of the others: with 4 nodes, 2 of them",
    find: `isQuorum(options.quorums, options.acceptors ?? everybody(ctx), answered)`,
    replace: `answered.length > ctx.peers.length / 2`,
    ...foundBy("pct", "duel among four", "agreement"),
  },
].map((bug) => inFile(bug as Change, "paxos", "src/protocols/consensus/paxos/paxos.ts"));

export const bugs: readonly SeededBug[] = [
  ...extendedChangRoberts,
  ...bully,
  ...ricartAgrawala,
  ...causal,
  ...paxos,
  ...twoPhaseCommitBugs,
  ...multiPaxosBugs.map((bug): SeededBug => ({ ...bug, protocol: "multi-paxos" })),
  ...multiPaxosWithTwoBallots.map((bug): SeededBug => ({ ...bug, protocol: "multi-paxos, two ballots" })),
  ...multiPaxosAlone.map((bug): SeededBug => ({ ...bug, protocol: "multi-paxos, alone" })),
  ...multiPaxosWithMembers.map((bug): SeededBug => ({ ...bug, protocol: "multi-paxos, members change" })),
  ...cheapPaxosBugs.map((bug): SeededBug => ({ ...bug, protocol: "cheap-paxos" })),
  ...pbftBugs.map((bug): SeededBug => ({ ...bug, protocol: "pbft" })),
  ...pbftBesideForgers,
  ...agreementBugs,
  ...hardened,
  ...fastPaxos.map((bug) => ({ ...bug, protocol: "fast-paxos" }) as const),
  ...generalizedPaxos.map((bug) => ({ ...bug, protocol: "generalized-paxos" }) as const),
  ...raft.map((bug) => ({ ...bug, protocol: "raft" }) as const),
  ...raftWithLearners.map((bug) => ({ ...bug, protocol: "raft, two learners" }) as const),
  ...raftBounded.map((bug) => ({ ...bug, protocol: "raft, bounded" }) as const),
  ...raftInFigure8.map((bug) => ({ ...bug, protocol: "raft, figure 8" }) as const),
  ...raftWithDrift.map((bug) => ({ ...bug, protocol: "raft, drifting clocks" }) as const),
  ...raftReads.map((bug) => ({ ...bug, protocol: "raft, reads" }) as const),
  ...raftLeases.map((bug) => ({ ...bug, protocol: "raft, leases" }) as const),
  ...raftOverConflicts.map((bug) => ({ ...bug, protocol: "raft, over a conflict" }) as const),
  ...raftSuccessions.map((bug) => ({ ...bug, protocol: "raft, succession" }) as const),
  ...raftPreVotes.map((bug) => ({ ...bug, protocol: "raft, pre-votes" }) as const),
];
