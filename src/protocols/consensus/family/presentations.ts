/** How replicated logs are shown: their messages, and what keeps coming while nothing is the matter. */
import type { DeclaredPresentation } from "../../presentations.ts";

/** Of logs with ballots and slots. */
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
