/**
 * Maekawa's algorithm with votes that can be returned: requests are ordered by Lamport timestamps, and a voter asks its
 * candidate to yield to an earlier request. This prevents deadlocks. Maekawa, ACM TOCS 1985, as corrected by Sanders,
 * "The Information Structure of Distributed Mutual Exclusion Algorithms", ACM TOCS 1987: if an earlier request
 * displaces another from the head of a queue, the displaced node receives `failed`.
 *
 * Assumes   no crashes; reliable FIFO links; no node stays inside forever.
 * Safety    ME1: at most one node is inside. Not ME3, although queues are ordered by (T, p): an idle voter votes for a
 *           later request that arrives first.
 * Liveness  ME2: every request is eventually granted.
 * Cost      3(K − 1) messages per entry without contention, and up to 5(K − 1) with contention, because of failed,
 *           inquire and yield. K ≈ √N is the size of the voting sets. A client waits 2 message delays to enter; a
 *           hand-over also takes 2.
 *
 * `recovering.ts` tolerates crashes and lets nodes recover.
 */
import { precedes, type Stamp, tick } from "../../../core/clocks.ts";
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { natural } from "../../../core/shape.ts";
import { exclude, include } from "../../node-set.ts";
import { flag, type OptionsOf, optionTable } from "../../options.ts";
import { mutexProperties, type Section } from "../family/workload.ts";
import { electorates, voteCount } from "../parts/voting-sets.ts";

/** Vocabulary of Maekawa–Sanders. */
export type MaekawaSanders = {
  state: {
    /** Lamport's clock. */
    clock: number;
    section: Section;
    /** T of the node's last request. */
    time: number;
    /** V_i: the nodes whose votes this node needs, including itself, in ascending order. */
    voters: NodeId[];
    /** The nodes that have voted for this node's request so far, in ascending order. */
    votes: NodeId[];
    /** Voters that currently prefer a different request, in ascending order. */
    failedAt: NodeId[];
    /**
     * Voters that have asked for their vote back, in ascending order. The node answers once it is clear that it cannot
     * use the vote now.
     */
    inquiries: NodeId[];
    ballot: Ballot;
    /** The highest token that this node knows, which it passes on in votes and releases. */
    token: number;
  };
  message:
    | { type: "request"; time: number }
    | { type: "vote"; time: number; token: number }
    /** Reports that a different request comes first. */
    | { type: "failed"; time: number }
    /** Asks the candidate to return the vote. */
    | { type: "inquire"; time: number }
    /** Returns the vote. */
    | { type: "yield"; time: number }
    | { type: "release"; time: number; token: number };
  /** `enter` is ignored unless the section is `released`; `exit` is ignored unless it is `held`. */
  command: { type: "enter" } | { type: "exit" };
  /**
   * The token increases from one entry to the next, across all nodes, because any two entries have a voter in common.
   */
  event: { type: "entered"; token: number } | { type: "exited" };
};

/** A voter's state. */
interface Ballot {
  candidate: Stamp | null;
  /** Whether the voter has asked the candidate to yield. */
  inquired: boolean;
  /** The requests other than the candidate's, earliest first. */
  queue: Stamp[];
}

/** The options that both forms of the algorithm have. */
export const sandersOptions = {
  tellsDisplaced: flag(
    true,
    "Sanders' correction; without it, as published in 1985, nodes can wait for each other forever",
  ),
};

const maekawaSandersOptions = optionTable("maekawa-sanders", sandersOptions);

/** Options of `maekawaSanders()`. */
export type MaekawaSandersOptions = OptionsOf<typeof maekawaSandersOptions>;

type State = MaekawaSanders["state"];
type Ctx = Context<MaekawaSanders>;
type Message = MaekawaSanders["message"];

const byStamp = (a: Stamp, b: Stamp): number => (precedes(a, b) ? -1 : 1);
const isSame = (a: Stamp, b: Stamp): boolean => a.time === b.time && a.node === b.node;

/**
 * Creates the rules for voters and candidates. `mayVote` always returns true in the published algorithm, but
 * `recovering.ts` makes a voter wait.
 */
export function votingRules(tellsDisplaced: boolean, mayVote: (state: State) => boolean) {
  /** Sends a message. A node is one of its own voters, and directly handles messages to itself. */
  function tell(to: NodeId, message: Message, state: State, ctx: Ctx): void {
    if (to === ctx.self) hear(state, ctx.self, message, ctx);
    else ctx.send(to, message);
  }

  function hear(state: State, from: NodeId, message: Message, ctx: Ctx): void {
    const { type, time } = message;
    if (from !== ctx.self) state.clock = tick(state.clock, time);
    if ("token" in message) state.token = Math.max(state.token, message.token);
    if (type === "request") return consider({ time, node: from }, state, ctx);
    if (type === "release" || type === "yield") return takeBack({ time, node: from }, type, state, ctx);
    // The message is about a request that has already been granted or is over.
    if (state.section !== "wanted" || time !== state.time) return;
    if (type === "vote") noteVote(from, state, ctx);
    else {
      include(type === "failed" ? state.failedAt : state.inquiries, from);
      yieldWhereUseless(state, ctx);
    }
  }

  // The voter.

  function consider(request: Stamp, state: State, ctx: Ctx): void {
    const { ballot } = state;
    if ([ballot.candidate, ...ballot.queue].some((known) => known !== null && isSame(known, request))) return; // A duplicate.
    if (ballot.candidate === null && mayVote(state)) return vote(request, state, ctx);
    const [head] = ballot.queue;
    ballot.queue.push(request);
    ballot.queue.sort(byStamp);
    // The request will be considered again once this node may vote.
    if (ballot.candidate === null || !mayVote(state)) return;
    const isFirst = ballot.queue[0] === request && precedes(request, ballot.candidate);
    if (!isFirst) return tell(request.node, { type: "failed", time: request.time }, state, ctx);
    // The previous head preceded the candidate, so it has not yet received `failed`.
    if (tellsDisplaced && head !== undefined && precedes(head, ballot.candidate))
      tell(head.node, { type: "failed", time: head.time }, state, ctx);
    if (ballot.inquired) return;
    ballot.inquired = true;
    tell(ballot.candidate.node, { type: "inquire", time: ballot.candidate.time }, state, ctx);
  }

  function vote(request: Stamp, state: State, ctx: Ctx): void {
    state.ballot.candidate = request;
    state.ballot.inquired = false;
    tell(request.node, { type: "vote", time: request.time, token: state.token }, state, ctx);
  }

  function takeBack(request: Stamp, how: "release" | "yield", state: State, ctx: Ctx): void {
    const { ballot } = state;
    if (ballot.candidate === null || !isSame(ballot.candidate, request)) {
      // The message is a duplicate, or comes from a node that was wrongly suspected and did not need this vote.
      if (how === "release") ballot.queue = ballot.queue.filter((waiting) => !isSame(waiting, request));
      return;
    }
    ballot.candidate = null;
    if (how === "yield") {
      ballot.queue.push(request);
      ballot.queue.sort(byStamp);
    }
    voteForNext(state, ctx);
  }

  function voteForNext(state: State, ctx: Ctx): void {
    if (!mayVote(state)) return;
    const next = state.ballot.queue.shift();
    if (next !== undefined) vote(next, state, ctx);
  }

  // The candidate.

  function noteVote(voter: NodeId, state: State, ctx: Ctx): void {
    if (!state.voters.includes(voter)) return; // A different voter has replaced the sender.
    exclude(state.failedAt, voter);
    include(state.votes, voter);
    enterIfAllVoted(state, ctx);
  }

  function enterIfAllVoted(state: State, ctx: Ctx): void {
    if (state.section !== "wanted" || state.votes.length < state.voters.length) return;
    state.section = "held";
    state.inquiries = []; // The release will answer them.
    state.token += 1;
    ctx.emit({ type: "entered", token: state.token });
  }

  /**
   * Returns useless votes to voters that have asked for them. While one voter prefers a different request, the votes
   * from the others are useless.
   */
  function yieldWhereUseless(state: State, ctx: Ctx): void {
    if (state.failedAt.length === 0) return;
    const asking = state.inquiries;
    state.inquiries = [];
    for (const voter of asking) {
      exclude(state.votes, voter);
      include(state.failedAt, voter);
      tell(voter, { type: "yield", time: state.time }, state, ctx);
    }
  }

  function ask(voters: NodeId[], state: State, ctx: Ctx): void {
    state.clock = tick(state.clock);
    Object.assign(state, { section: "wanted", time: state.clock, voters, votes: [], failedAt: [], inquiries: [] });
    for (const voter of voters) tell(voter, { type: "request", time: state.time }, state, ctx);
  }

  function leave(voters: readonly NodeId[], state: State, ctx: Ctx): void {
    state.section = "released";
    ctx.emit({ type: "exited" });
    for (const voter of voters) tell(voter, { type: "release", time: state.time, token: state.token }, state, ctx);
  }

  return { tell, hear, consider, voteForNext, enterIfAllVoted, ask, leave };
}

/** Creates Maekawa's algorithm with Sanders' correction. @throws UsageError if an option is unknown or out of range. */
export function maekawaSanders(given?: Partial<MaekawaSandersOptions>): Protocol<MaekawaSanders> {
  const { tellsDisplaced } = maekawaSandersOptions.settle(given);
  const votersOf = electorates();
  const { hear, ask, leave } = votingRules(tellsDisplaced, () => true);

  return {
    name: "maekawa-sanders",
    init: (self, peers) => ({
      clock: 0,
      section: "released",
      time: 0,
      voters: votersOf(self, peers),
      votes: [],
      failedAt: [],
      inquiries: [],
      ballot: { candidate: null, inquired: false, queue: [] },
      token: 0,
    }),
    receive: { request: hear, vote: hear, failed: hear, inquire: hear, yield: hear, release: hear },
    command: {
      enter(state, _command, ctx) {
        if (state.section !== "released") return; // The node is already waiting or inside.
        ask(votersOf(ctx.self, ctx.peers), state, ctx);
      },
      exit(state, _command, ctx) {
        if (state.section !== "held") return; // The node is not inside.
        leave(state.voters, state, ctx);
      },
    },
    ...declarations,
  };
}

const timed = { time: natural };
const counted = { time: natural, token: natural };

const declarations: Pick<
  Protocol<MaekawaSanders>,
  "shapes" | "source" | "assumes" | "properties" | "costs" | "view"
> = {
  shapes: {
    message: {
      request: timed,
      vote: counted,
      failed: timed,
      inquire: timed,
      yield: timed,
      release: counted,
    },
    command: { enter: {}, exit: {} },
  },
  source: "Maekawa, ACM TOCS 1985; Sanders, ACM TOCS 1987",
  assumes: ["no crashes", "reliable FIFO links", "no node stays inside forever"],
  properties: mutexProperties(({ section }) => section),
  costs: [{ when: "one entry and exit without contention", messages: (nodes) => 3 * (voteCount(nodes) - 1) }],
  view: ({ section, ballot: { candidate } }) => ({
    role: candidate === null ? section : `${section}, voted for ${candidate.node}`,
  }),
};
