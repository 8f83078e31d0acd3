/**
 * Raft: a majority elects a leader. The leader orders all commands in its log and replicates the log to the other
 * nodes. An entry of the leader's term is committed once a majority has it.
 * Ongaro & Ousterhout, "In Search of an Understandable Consensus Algorithm", USENIX ATC 2014. Pre-vote, reads and
 * leadership transfer: Ongaro, "Consensus: Bridging Theory and Practice", 2014.
 * The files are named after the sections of the paper.
 *
 * Assumes   crash-recovery nodes with a journal. For liveness: a majority is alive and connected to a common leader;
 *           links are eventually reliable and delays eventually bounded. For lease reads: every clock runs at between 1
 *           − `drift` and 1 + `drift` times the correct speed, and no leader is paused.
 * Safety    election safety, leader append-only, log matching, leader completeness, state-machine safety and
 *           linearizable reads, under any delay, loss, duplication, reordering, partition, crash and recovery.
 * Liveness  eventually one node leads, and every member decides a command that is proposed repeatedly. With
 *           `handOverBeats`, the leader eventually has the best priority among the live voters that it can reach. With
 *           `catchUpRounds`, a new voter has caught up with the log before it counts toward a quorum.
 * Cost      2(N − 1) messages for a batch of entries; 2(N − 1) for an election, 2(N − 1) for its pre-vote and 2(N − 1)
 *           for the first entry of the term; 2(N − 1) for a read, none for a lease read; 2(N − 1) for a round of
 *           heartbeats.
 */
import type { Context, NodeId, Protocol, ReceiveTable } from "../../../core/protocol.ts";
import { include } from "../../node-set.ts";
import { checkCatchUp, noteCaughtUp } from "./catching-up.ts";
import { ask, askAgain, perform } from "./client-interaction.ts";
import { declarations } from "./declarations.ts";
import { checkQuorum, endLease, heartbeat } from "./heartbeats.ts";
import { answerPreVote, answerVote, notePreVote, noteVote, standForElection, timeOut } from "./leader-election.ts";
import { handOver } from "./leadership-transfer.ts";
import { cut, take } from "./log.ts";
import { compact, noteChunk, receiveChunk, tellSnapshot } from "./log-compaction.ts";
import {
  commitAgreed,
  noteAppended,
  noteRejected,
  receiveEntries,
  replicate,
  sendAgain,
  tellCommit,
} from "./log-replication.ts";
import { isVoter } from "./membership-changes.ts";
import { type RaftOptions, raftOptions } from "./options.ts";
import { propertiesWith } from "./properties.ts";
import { noteConfirmed, noteIndex } from "./reads.ts";
import { commit } from "./safety.ts";
import { awaitLeader, keepStill } from "./server-states.ts";
import { observeTerm } from "./terms.ts";
import { type Follower, type Leader, leaderOf, type Raft } from "./vocabulary.ts";

export type { RaftOptions } from "./options.ts";
export type { Raft } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;

/** A function that handles a follower's answer at the leader. */
type Noted = (role: Leader, follower: Follower) => void;

/** Handles an answer, if this node still leads and the sender is one of its followers. */
function noteAnswer({ role }: State, from: NodeId, note: Noted, options: RaftOptions): void {
  const follower = role.is === "leader" ? role.followers[from] : undefined;
  if (role.is !== "leader" || follower === undefined) return;
  follower.isActive = true;
  if (options.handOverBeats > 0) follower.hasAnswered = true;
  note(role, follower);
}

/** Applies the rules for terms to every message before its handler runs. */
const inTerm = (options: RaftOptions, handlers: ReceiveTable<Raft>): ReceiveTable<Raft> =>
  Object.fromEntries(
    Object.entries(handlers).map(([type, handle]) => [
      type,
      (state: State, from: NodeId, message: never, ctx: Ctx) => {
        if (observeTerm(state, from, message, options, ctx)) handle(state, from, message, ctx);
      },
    ]),
  ) as unknown as ReceiveTable<Raft>;

/**
 * Handles the commands that waited for a leader, if this node now leads. Several handlers can complete an election, and
 * each of them calls this.
 */
function ifLeading(state: State, options: RaftOptions, ctx: Ctx): void {
  if (state.role.is === "leader") askAgain(state, options, ctx);
}

function initial(nodes: NodeId[], options: RaftOptions): State {
  const learners = options.learners.toSorted((a, b) => a - b);
  const voters = (options.voters ?? nodes.filter((node) => !learners.includes(node))).toSorted((a, b) => a - b);
  return {
    term: 0,
    votedFor: null,
    log: { offset: 0, offsetTerm: 0, entries: [] },
    snapshot: { index: 0, term: 0, configuration: { voters, learners, outgoing: null }, chunks: [] },
    hasReceived: false,
    commitIndex: 0,
    configuration: { voters, learners, outgoing: null, index: 0 },
    role: { is: "follower", leader: null, hasHeard: false, incoming: null },
    waiting: [],
    reads: [],
    dropped: 0,
    handOvers: 0,
  };
}

/** Creates Raft as a replicated log. @throws UsageError `bad-option` if an option is unknown or out of range. */
export function raft(given?: Partial<RaftOptions>): Protocol<Raft> {
  const options = raftOptions.settle(given);

  const answered = (state: State, from: NodeId, note: Noted): void => noteAnswer(state, from, note, options);

  const lease = (parity: number) => (state: State) => {
    if (state.role.is === "leader") endLease(state.role, parity);
  };

  return {
    name: "raft",
    init: (self, peers) => initial([self, ...peers], options),
    start(state, ctx) {
      if (state.snapshot.index > 0) tellSnapshot(state, ctx);
      awaitLeader(state, options, ctx);
      keepStill(state, options, ctx);
    },
    receive: inTerm(options, {
      requestPreVote: (state, from, message, ctx) => answerPreVote(state, from, message, options, ctx),
      preVote(state, from, { term, isGranted }, ctx) {
        if (isGranted && term === state.term + 1) notePreVote(state, from, options, ctx);
        ifLeading(state, options, ctx);
      },
      requestVote: (state, from, message, ctx) => answerVote(state, from, message, options, ctx),
      vote(state, from, { isGranted }, ctx) {
        if (isGranted) noteVote(state, from, options, ctx);
        ifLeading(state, options, ctx);
      },
      appendEntries: (state, from, message, ctx) => receiveEntries(state, from, message, ctx),
      appended(state, from, message, ctx) {
        answered(state, from, (role, follower) => {
          follower.isOverdue = false;
          const { match } = follower;
          const { commitIndex } = state;
          noteAppended(state, role, from, message.matchIndex);
          commitAgreed(state, options, ctx);
          if (options.tellsCommit && match < follower.match && match < commitIndex && commitIndex === state.commitIndex)
            tellCommit(state, role, from, ctx); // The entry was committed before this follower had it.
          if (state.role !== role) return; // The leader was removed from the configuration, and this was its last step.
          replicate(state, from, follower, options, ctx);
          if (role.transfer === from) handOver(state, role, ctx);
          noteCaughtUp(state, role, options, ctx);
        });
      },
      rejected(state, from, message, ctx) {
        answered(state, from, (_role, follower) => {
          follower.isOverdue = false;
          noteRejected(state, follower, message);
          replicate(state, from, follower, options, ctx);
        });
      },
      committed: (state, _from, { commitIndex }, ctx) => commit(state, commitIndex, ctx),
      heartbeat(state, from, message, ctx) {
        commit(state, message.commitIndex, ctx);
        ctx.send(from, { type: "heartbeatAnswered", term: state.term, round: message.round });
      },
      heartbeatAnswered(state, from, message, ctx) {
        answered(state, from, (role, follower) => {
          if (follower.isOverdue) sendAgain(state, from, follower, options, ctx);
          if (message.round !== role.round) return;
          include(role.answered, from);
          noteConfirmed(state, role, options, ctx);
        });
      },
      installSnapshot: (state, from, message, ctx) => receiveChunk(state, from, message, options, ctx),
      chunkReceived(state, from, message, ctx) {
        answered(state, from, (_role, follower) => {
          follower.isOverdue = false;
          noteChunk(state, from, follower, message, ctx);
        });
      },
      timeoutNow(state, from, _message, ctx) {
        if (leaderOf(state, ctx.self) !== from) return;
        if (isVoter(state.configuration, ctx.self)) standForElection(state, true, options, ctx);
        ifLeading(state, options, ctx);
      },
      forward: (state, from, { request }, ctx) => perform(state, from, request, options, ctx),
      readIndex: (state, _from, { read, index }, ctx) => noteIndex(state, read, index, options, ctx),
      changeRefused: (_state, _from, refused, ctx) => ctx.emit(refused),
    }),
    timeout: {
      election(state, ctx) {
        timeOut(state, options, ctx);
        ifLeading(state, options, ctx);
      },
      heartbeat(state, ctx) {
        if (state.role.is === "leader") heartbeat(state, state.role, options, ctx);
      },
      quorum(state, ctx) {
        if (state.role.is === "leader") checkQuorum(state, state.role, options, ctx);
      },
      transfer(state, ctx) {
        if (state.role.is !== "leader") return;
        state.role.transfer = null; // The target was not elected in time, so this node continues to lead.
        askAgain(state, options, ctx);
      },
      catchUp(state, ctx) {
        if (state.role.is === "leader") checkCatchUp(state, state.role, options, ctx);
      },
      leaseEven: lease(0),
      leaseOdd: lease(1),
    },
    command: {
      propose: (state, { command }, ctx) => ask(state, { type: "propose", command }, options, ctx),
      compact: (state, { index, snapshot }, ctx) => compact(state, index, snapshot, options, ctx),
      read: (state, { read }, ctx) => ask(state, { type: "read", read }, options, ctx),
      reconfigure: (state, { voters, learners }, ctx) =>
        ask(state, { type: "reconfigure", voters, learners }, options, ctx),
      transfer: (state, { to }, ctx) => ask(state, { type: "transfer", to }, options, ctx),
    },
    replay: {
      voted(state, { term, votedFor }) {
        state.term = term;
        state.votedFor = votedFor;
      },
      appended: (state, { entries }) => take(state, entries),
      truncated: (state, record) => cut(state, record.lastIndex),
      snapshot(state, { index, term, configuration, offset, offsetTerm, chunks }) {
        state.snapshot = { index, term, configuration, chunks };
        state.log = { offset, offsetTerm, entries: [] };
        state.configuration = { ...configuration, index };
        state.commitIndex = index;
      },
      received(state) {
        state.hasReceived = true; // The leader sends the snapshot again from its first chunk.
      },
    },
    ...declarations,
    properties: propertiesWith(options),
  };
}
