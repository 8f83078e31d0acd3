/** Raft's declarations: the shapes of messages, commands and records, and the assumptions, costs and view. */
import type { Protocol } from "../../../core/protocol.ts";
import { boolean, chunk, list, natural, nullable, oneOf, struct, variants } from "../../../core/shape.ts";
import {
  commandShape,
  logCommandShapes,
  MAX_CHUNK_BYTES,
  MAX_MEMBERS,
  type Refusal,
  snapshotShape,
} from "../family/replicated-log.ts";
import { lastIndex } from "./log.ts";
import { MAX_BATCH_ENTRIES } from "./options.ts";
import { properties } from "./properties.ts";
import { type Configuration, type Entry, type Forwarded, leaderOf, type Raft } from "./vocabulary.ts";

type Declarations = Pick<Protocol<Raft>, "shapes" | "source" | "assumes" | "properties" | "costs" | "view">;

const nodes = list(natural, MAX_MEMBERS);
const configuration = struct<Configuration>({ voters: nodes, learners: nodes, outgoing: nullable(nodes) });
const entries = list(
  variants<Entry>({
    command: { term: natural, command: commandShape },
    noop: { term: natural },
    configuration: { term: natural, configuration },
  }),
  MAX_BATCH_ENTRIES,
);
const { compact: _compact, reply: _reply, ...forwarded } = logCommandShapes;

/** The shapes, source, assumptions and costs. */
export const declarations: Declarations = {
  shapes: {
    message: {
      requestPreVote: { term: natural, lastIndex: natural, lastTerm: natural },
      preVote: { term: natural, isGranted: boolean },
      requestVote: { term: natural, lastIndex: natural, lastTerm: natural, isTransfer: boolean },
      vote: { term: natural, isGranted: boolean },
      appendEntries: {
        term: natural,
        previousIndex: natural,
        previousTerm: natural,
        entries,
        commitIndex: natural,
      },
      appended: { term: natural, matchIndex: natural },
      rejected: { term: natural, previousIndex: natural, conflictTerm: nullable(natural), conflictIndex: natural },
      committed: { term: natural, commitIndex: natural },
      heartbeat: { term: natural, round: natural, commitIndex: natural },
      heartbeatAnswered: { term: natural, round: natural },
      installSnapshot: {
        term: natural,
        index: natural,
        lastTerm: natural,
        configuration,
        part: natural,
        chunk: chunk(MAX_CHUNK_BYTES),
        isLast: boolean,
      },
      chunkReceived: { term: natural, index: natural, received: natural },
      timeoutNow: { term: natural },
      forward: { request: variants<Forwarded>(forwarded) },
      readIndex: { read: natural, index: natural },
      changeRefused: { voters: nodes, learners: nodes, reason: oneOf<Refusal>("no progress", "too slow") },
    },
    command: logCommandShapes,
    record: {
      voted: { term: natural, votedFor: nullable(natural) },
      appended: { entries },
      truncated: { lastIndex: natural },
      snapshot: {
        index: natural,
        term: natural,
        configuration,
        offset: natural,
        offsetTerm: natural,
        chunks: snapshotShape,
      },
      received: { chunk: chunk(MAX_CHUNK_BYTES) },
    },
  },
  source: "Ongaro & Ousterhout, USENIX ATC 2014; Ongaro's thesis, Stanford 2014",
  assumes: [
    "crash-recovery nodes with a journal",
    "for liveness: a majority alive and connected to a common leader; eventually reliable links and bounded delay",
    "for lease reads: clock drift within the configured margin, no process pauses",
  ],
  properties,
  costs: [
    { when: "one batch of entries", messages: (n) => 2 * (n - 1) },
    { when: "one election, with its pre-vote and the first entry of the term", messages: (n) => 6 * (n - 1) },
    { when: "one read", messages: (n) => 2 * (n - 1) },
    { when: "a round of heartbeats", messages: (n) => 2 * (n - 1) },
  ],
  view: (state, self) => ({
    role: roles[state.role.is],
    leader: leaderOf(state, self),
    term: state.term,
    log: { decided: state.commitIndex, last: lastIndex(state.log) },
  }),
};

const roles = {
  follower: "follower",
  preCandidate: "pre-candidate",
  candidate: "candidate",
  leader: "leader",
} as const;
