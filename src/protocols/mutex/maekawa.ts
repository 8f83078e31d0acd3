/**
 * Maekawa's algorithm: a node that wants to enter requests votes only from its voting set. Any two voting sets share a
 * node, and a node votes for one request at a time. Maekawa, "A √N Algorithm for Mutual Exclusion in Decentralized
 * Systems", ACM TOCS 1985; terms of Coulouris et al. §15.2, which omits the messages that resolve deadlocks.
 *
 * Assumes   no crashes; reliable links, in any order; no node stays inside forever.
 * Safety    ME1: at most one node is inside. Not ME3.
 * Liveness  none: three concurrent requests can wait for each other forever. `maekawa-sanders` fixes that.
 * Cost      3(K − 1) messages per entry, where K ≈ √N is the size of the voting sets: a request, a vote and a release
 *           for each voter other than the node itself. A client waits 2 message delays to enter; a hand-over also takes
 *           2.
 */
import type { Context, NodeId, Protocol } from "../../core/protocol.ts";
import { natural } from "../../core/shape.ts";
import { include } from "../node-set.ts";
import { requireNoOptions } from "../options.ts";
import { mutexProperties, type Section } from "./family/workload.ts";
import { electorates, voteCount } from "./parts/voting-sets.ts";

/** Vocabulary of Maekawa's algorithm. */
export type Maekawa = {
  state: {
    section: Section;
    /** V_i: the nodes whose votes this node needs, including itself, in ascending order. */
    voters: NodeId[];
    /** The nodes that have voted for this node's request so far, in ascending order. */
    votes: NodeId[];
    /** The node that this one has voted for and that has not yet released the vote. */
    votedFor: NodeId | null;
    /** The nodes with requests waiting for this node's vote, in FIFO order. */
    queue: NodeId[];
    /** The highest token that this node knows, which it passes on in votes and releases. */
    token: number;
  };
  message: { type: "request" } | { type: "vote"; token: number } | { type: "release"; token: number };
  /** `enter` is ignored unless the section is `released`; `exit` is ignored unless it is `held`. */
  command: { type: "enter" } | { type: "exit" };
  /**
   * The token increases from one entry to the next, across all nodes, because any two entries have a voter in common.
   */
  event: { type: "entered"; token: number } | { type: "exited" };
};

type State = Maekawa["state"];
type Ctx = Context<Maekawa>;

/** Creates Maekawa's algorithm. @throws UsageError if any option is given, because there are none. */
export function maekawa(given?: Record<never, never>): Protocol<Maekawa> {
  requireNoOptions("maekawa", given);
  const votersOf = electorates();

  function request(from: NodeId, state: State, ctx: Ctx): void {
    if (state.votedFor === null) vote(from, state, ctx);
    else state.queue.push(from);
  }

  function vote(candidate: NodeId, state: State, ctx: Ctx): void {
    state.votedFor = candidate;
    if (candidate === ctx.self) noteVote(ctx.self, state.token, state, ctx);
    else ctx.send(candidate, { type: "vote", token: state.token });
  }

  function noteVote(from: NodeId, token: number, state: State, ctx: Ctx): void {
    if (state.section !== "wanted") return; // A duplicate: the node already has all votes.
    state.token = Math.max(state.token, token);
    include(state.votes, from);
    if (state.votes.length < state.voters.length) return;
    state.section = "held";
    state.token += 1;
    ctx.emit({ type: "entered", token: state.token });
  }

  function release(from: NodeId, token: number, state: State, ctx: Ctx): void {
    if (state.votedFor !== from) return; // A duplicate.
    state.token = Math.max(state.token, token);
    state.votedFor = null;
    const next = state.queue.shift();
    if (next !== undefined) vote(next, state, ctx);
  }

  return {
    name: "maekawa",
    init: (self, peers) => ({
      section: "released",
      voters: votersOf(self, peers),
      votes: [],
      votedFor: null,
      queue: [],
      token: 0,
    }),
    receive: {
      request: (state, from, _message, ctx) => request(from, state, ctx),
      vote: (state, from, { token }, ctx) => noteVote(from, token, state, ctx),
      release: (state, from, { token }, ctx) => release(from, token, state, ctx),
    },
    command: {
      enter(state, _command, ctx) {
        if (state.section !== "released") return; // The node is already waiting or inside.
        state.section = "wanted";
        state.votes = [];
        for (const voter of state.voters) if (voter !== ctx.self) ctx.send(voter, { type: "request" });
        request(ctx.self, state, ctx);
      },
      exit(state, _command, ctx) {
        if (state.section !== "held") return; // The node is not inside.
        state.section = "released";
        ctx.emit({ type: "exited" });
        const { token } = state;
        for (const voter of state.voters) if (voter !== ctx.self) ctx.send(voter, { type: "release", token });
        release(ctx.self, token, state, ctx);
      },
    },
    shapes: {
      message: { request: {}, vote: { token: natural }, release: { token: natural } },
      command: { enter: {}, exit: {} },
    },
    source: "Maekawa, ACM TOCS 1985; Coulouris et al. §15.2",
    assumes: ["no crashes", "reliable links", "no node stays inside forever"],
    properties: mutexProperties(({ section }) => section),
    costs: [{ when: "one entry and exit", messages: (nodes) => 3 * (voteCount(nodes) - 1) }],
    view: ({ section, votedFor }) => ({ role: votedFor === null ? section : `${section}, voted for ${votedFor}` }),
  };
}
