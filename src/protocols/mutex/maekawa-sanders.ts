/**
 * Maekawa's algorithm with votes that can be taken back: requests are ordered by Lamport's stamps, and a voter asks its
 * candidate to yield to an earlier one. No deadlock.
 * Maekawa, ACM TOCS 1985, with the correction of Sanders, "The Information Structure of Distributed Mutual Exclusion
 * Algorithms", ACM TOCS 1987: a request that an earlier one displaces from the head of a queue is told that it has failed.
 *
 * Assumes   no crashes; reliable FIFO links; a node that is inside leaves.
 * Safety    ME1: at most one node is inside. Not ME3, though queues are ordered by (T, p): a voter that is free votes for
 *           a later request that reaches it first.
 * Liveness  ME2: every request is granted in the end.
 * Cost      3(K − 1) messages per entry without rivals, up to 5(K − 1) with: failed, inquire and yield. K ≈ √N is the
 *           size of the voting sets. Client delay 2 message times, hand-over 2.
 *
 * Told of suspicions, by a failure detector, a node that suspects one of its voters asks all that it does not suspect
 * instead, which meets every other set in the node whose set it is; and a voter takes its vote back, and votes for nobody
 * before it has heard from all others how high tokens are: 2(N − 2) messages. With `rejoins`, a node that starts neither
 * asks nor votes before it has heard from all others for which node it had voted, too. Then crashes and recoveries are allowed,
 * as long as nobody is suspected who is alive and not two are down at a time: ME1 and ME2 hold, and tokens grow. A wrong
 * suspicion, as in a partition, lets two in. 2(N − 1) messages per start.
 */
import { precedes, type Stamp, tick } from "../../core/clocks.ts";
import type { Context, NodeId, Protocol } from "../../core/protocol.ts";
import { boolean, natural, nullable, struct } from "../../core/shape.ts";
import { exclude, include } from "../node-set.ts";
import { settle } from "../options.ts";
import { mutexProperties, type Section } from "./family/properties.ts";
import { electorates, voteCount } from "./parts/voting-sets.ts";

export type MaekawaSanders = {
  state: {
    /** Lamport's clock. */
    clock: number;
    section: Section;
    /** T of the node's last request. */
    time: number;
    /** V_i: whose votes this node needs, its own among them. Ascending. */
    voters: NodeId[];
    /** Who has voted for its request so far. Ascending. */
    votes: NodeId[];
    /** Voters that prefer another for the time being. Ascending. */
    failedAt: NodeId[];
    /** Voters that ask for their vote back; answered as soon as it is clear that it is of no use now. Ascending. */
    inquiries: NodeId[];
    ballot: Ballot;
    /** The highest that this node knows of: its votes and releases carry it on. */
    token: number;
    /** Ascending. */
    suspected: NodeId[];
    /** Whether it has started, or forgotten for which node it had voted, and waits for the welcome of those in `unmet`. */
    joining: boolean;
    /** Ascending. */
    unmet: NodeId[];
    /** Whether it asks as soon as it may. */
    wishes: boolean;
  };
  message:
    | { type: "request"; time: number }
    | { type: "vote"; time: number; token: number }
    /** Another comes first. */
    | { type: "failed"; time: number }
    /** Would you give the vote back? */
    | { type: "inquire"; time: number }
    /** Here it is. */
    | { type: "yield"; time: number }
    | { type: "release"; time: number; token: number }
    /** What do you want of me? `forgotten`: I have started, and know nothing. */
    | { type: "hello"; forgotten: boolean }
    /** The time of the request for which I need your vote, and whether I have it. */
    | { type: "welcome"; time: number; token: number; wanted: number | null; voted: boolean };
  /** `enter` counts when released, `exit` when held. */
  command: { type: "enter" } | { type: "exit" } | { type: "suspect"; node: NodeId } | { type: "restore"; node: NodeId };
  /** The token grows from one entry to the next, over all nodes: both had the vote of the same node. */
  event: { type: "entered"; token: number } | { type: "exited" };
};

/** What a node keeps as a voter. */
interface Ballot {
  candidate: Stamp | null;
  /** Whether the candidate has been asked to yield. */
  inquired: boolean;
  /** The other requests, the earliest first. */
  queue: Stamp[];
}

export interface MaekawaSandersOptions {
  /** Sanders' correction. Without it, as published in 1985, nodes can still wait for each other for ever. */
  tellsDisplaced: boolean;
  /** Hears from all others what they want of it before it asks or votes. */
  rejoins: boolean;
}

const defaults: MaekawaSandersOptions = { tellsDisplaced: true, rejoins: false };

const optionShape = struct<MaekawaSandersOptions>({ tellsDisplaced: boolean, rejoins: boolean });

type State = MaekawaSanders["state"];
type Ctx = Context<MaekawaSanders>;
type Message = Exclude<MaekawaSanders["message"], { type: "hello" | "welcome" }>;

const byStamp = (a: Stamp, b: Stamp): number => (precedes(a, b) ? -1 : 1);
const isSame = (a: Stamp, b: Stamp): boolean => a.time === b.time && a.node === b.node;

const mustWait = ({ unmet, suspected }: State): boolean => !unmet.every((node) => suspected.includes(node));

/**
 * The candidate may have entered with one more than the highest that any of its voters knew of, which this node need not
 * have heard of. Those that are alive know it.
 */
function askForTokens(state: State, ctx: Ctx): void {
  state.joining = true;
  state.unmet = ctx.peers.filter((peer) => !state.suspected.includes(peer));
  for (const peer of state.unmet) ctx.send(peer, { type: "hello", forgotten: false });
}

export function maekawaSanders(given?: Partial<MaekawaSandersOptions>): Protocol<MaekawaSanders> {
  const { tellsDisplaced, rejoins } = settle(defaults, optionShape, given, "maekawa-sanders");
  const votersOf = electorates();

  /** A node is one of its own voters: what it tells itself is no message. */
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
    if (state.section !== "wanted" || time !== state.time) return; // Of a request that has been granted or is over.
    if (type === "vote") noteVote(from, state, ctx);
    else {
      include(type === "failed" ? state.failedAt : state.inquiries, from);
      yieldWhereUseless(state, ctx);
    }
  }

  // The voter.

  function consider(request: Stamp, state: State, ctx: Ctx): void {
    const { ballot } = state;
    if (state.suspected.includes(request.node)) return; // It is asked again if it is restored.
    if ([ballot.candidate, ...ballot.queue].some((known) => known !== null && isSame(known, request))) return; // A duplicate.
    if (ballot.candidate === null && !state.joining) return vote(request, state, ctx);
    const [head] = ballot.queue;
    ballot.queue.push(request);
    ballot.queue.sort(byStamp);
    if (ballot.candidate === null || state.joining) return; // It is considered again as soon as this node has joined.
    const isFirst = ballot.queue[0] === request && precedes(request, ballot.candidate);
    if (!isFirst) return tell(request.node, { type: "failed", time: request.time }, state, ctx);
    // The head so far came before the candidate, so nobody has told it yet that it may have to wait.
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
      // A duplicate, or of somebody who was suspected, alive, and did not need this vote.
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
    if (state.joining) return;
    const next = state.ballot.queue.shift();
    if (next !== undefined) vote(next, state, ctx);
  }

  /** A node that is down or has started anew wants nothing of what it wanted before. */
  function letGo(node: NodeId, state: State, ctx: Ctx): void {
    const { ballot } = state;
    ballot.queue = ballot.queue.filter((waiting) => waiting.node !== node);
    if (ballot.candidate?.node !== node) return;
    ballot.candidate = null;
    askForTokens(state, ctx);
  }

  // The candidate.

  function noteVote(voter: NodeId, state: State, ctx: Ctx): void {
    if (!state.voters.includes(voter)) return; // It is suspected, and others vote instead.
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

  /** While one voter prefers another, the votes of the rest do not help: they are given back where they are asked for. */
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

  function ask(state: State, ctx: Ctx): void {
    state.clock = tick(state.clock);
    const voters = electorate(state, ctx);
    Object.assign(state, { section: "wanted", time: state.clock, voters, votes: [], failedAt: [], inquiries: [] });
    for (const voter of state.voters) tell(voter, { type: "request", time: state.time }, state, ctx);
  }

  // With a failure detector.

  function electorate({ suspected }: State, { self, peers }: Ctx): NodeId[] {
    const voters = votersOf(self, peers);
    if (!voters.some((voter) => suspected.includes(voter))) return voters;
    return [self, ...peers.filter((peer) => !suspected.includes(peer))].sort((a, b) => a - b);
  }

  /** One of those asked is suspected: the others that are not are asked as well. */
  function askOthers(state: State, ctx: Ctx): void {
    const asked = state.voters;
    state.voters = electorate(state, ctx);
    for (const set of ["votes", "failedAt", "inquiries"] as const)
      state[set] = state[set].filter((voter) => state.voters.includes(voter));
    for (const voter of state.voters)
      if (!asked.includes(voter)) tell(voter, { type: "request", time: state.time }, state, ctx);
    enterIfAllVoted(state, ctx);
  }

  function joinIfMet(state: State, ctx: Ctx): void {
    if (!state.joining || mustWait(state)) return;
    const { queue } = state.ballot;
    state.joining = false;
    state.token += 1; // A node that crashed inside may have entered with this one.
    state.ballot.queue = [];
    for (const request of queue) consider(request, state, ctx);
    if (!state.wishes) return;
    state.wishes = false;
    ask(state, ctx);
  }

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
      suspected: [],
      joining: false,
      unmet: [],
      wishes: false,
    }),
    start(state, ctx) {
      if (!rejoins || ctx.peers.length === 0) return;
      Object.assign(state, { joining: true, unmet: [...ctx.peers] });
      ctx.broadcast({ type: "hello", forgotten: true });
    },
    receive: {
      ...{ request: hear, vote: hear, failed: hear, inquire: hear, yield: hear, release: hear },
      hello(state, from, { forgotten }, ctx) {
        if (forgotten) {
          for (const set of ["suspected", "unmet", "failedAt", "inquiries"] as const) exclude(state[set], from);
          letGo(from, state, ctx);
        }
        const { clock, token, section, voters, votes } = state;
        const wanted = section !== "released" && voters.includes(from) ? state.time : null;
        ctx.send(from, { type: "welcome", time: clock, token, wanted, voted: votes.includes(from) });
        joinIfMet(state, ctx);
      },
      welcome(state, from, { time, token, wanted, voted }, ctx) {
        state.clock = tick(state.clock, time);
        state.token = Math.max(state.token, token);
        exclude(state.unmet, from);
        if (wanted !== null && !voted) consider({ time: wanted, node: from }, state, ctx);
        else if (wanted !== null) state.ballot.candidate ??= { time: wanted, node: from };
        joinIfMet(state, ctx);
      },
    },
    command: {
      enter(state, _command, ctx) {
        if (state.section !== "released") return; // It asks already, or is inside.
        if (state.joining) state.wishes = true;
        else ask(state, ctx);
      },
      exit(state, _command, ctx) {
        if (state.section !== "held") return; // It is not inside.
        state.section = "released";
        ctx.emit({ type: "exited" });
        const release: Message = { type: "release", time: state.time, token: state.token };
        const asked = new Set([...state.voters, ...votersOf(ctx.self, ctx.peers)]);
        for (const voter of [...asked].sort((a, b) => a - b)) tell(voter, release, state, ctx);
      },
      suspect(state, { node }, ctx) {
        include(state.suspected, node);
        letGo(node, state, ctx);
        if (state.section === "wanted" && state.voters.includes(node)) askOthers(state, ctx);
        joinIfMet(state, ctx);
      },
      restore(state, { node }, ctx) {
        exclude(state.suspected, node);
        ctx.send(node, { type: "hello", forgotten: false }); // This node has let go of what the other wants.
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
      hello: { forgotten: boolean },
      welcome: { time: natural, token: natural, wanted: nullable(natural), voted: boolean },
    },
    command: { enter: {}, exit: {}, suspect: { node: natural }, restore: { node: natural } },
  },
  source: "Maekawa, ACM TOCS 1985; Sanders, ACM TOCS 1987",
  assumes: ["no crashes", "reliable FIFO links", "a node that is inside leaves"],
  properties: mutexProperties(({ section, wishes }) => (wishes ? "wanted" : section)),
  costs: [{ when: "one entry and exit without rivals", messages: (nodes) => 3 * (voteCount(nodes) - 1) }],
  view: ({ section, ballot: { candidate } }) => ({
    role: candidate === null ? section : `${section}, voted for ${candidate.node}`,
  }),
};
