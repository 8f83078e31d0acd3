/**
 * Presentations of consensus protocols for the studio and traces: message labels, and the messages that recur when the
 * system is idle.
 */
import type { DeclaredPresentation } from "../../headlines.ts";
import { positioned, present } from "../../presentation.ts";
import type { Paxos } from "../paxos/paxos.ts";
import type { TwoPhaseCommit } from "../two-phase-commit/vocabulary.ts";

// Node positions in the diagram.

/** Places each node at the proposer that has its promise. */
export const byPromises = positioned<Paxos["state"]>(({ promised }) => present({ grantedTo: promised?.node }));

/** Places each node at the coordinator that it depends on. */
export const aroundCoordinator = positioned<TwoPhaseCommit["state"]>(({ coordinator, parts }, node) => {
  const all = Object.entries(parts).map(([by, part]) => ({ by: Number(by), status: part.status }));
  const doubts = all.filter(({ by, status }) => status === "in doubt" && by !== node).map(({ by }) => by);
  const named = coordinator.phase === "idle" ? all.at(-1)?.by : node;
  return present({ towards: named, waitsFor: doubts });
});

/** The presentation for logs with ballots and slots. */
export const ballotLog: DeclaredPresentation = {
  term: "ballot",
  labels: {
    prepare: ["ballot"],
    promise: ["ballot"],
    accept: ["slot", "ballot"],
    accepted: ["slot"],
    decided: ["decided"],
  },
  periodic: ["heartbeat", "confirm", "led"],
};

/** The presentation for Raft. */
export const raftLog: DeclaredPresentation = {
  labels: {
    requestPreVote: ["term"],
    preVote: ["term", "isGranted"],
    requestVote: ["term"],
    vote: ["term", "isGranted"],
    appendEntries: ["term", "commitIndex"],
    appended: ["matchIndex"],
    forward: [],
  },
  periodic: ["heartbeat", "heartbeatAnswered", "quorum", "led"],
};
