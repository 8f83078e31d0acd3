/**
 * The version of bully election that real processes and `join()` run. It adds resignation, changing ranks and
 * self-correction to the textbook version in `bully.ts`.
 *
 * A node that resigns notifies all peers and is not a candidate until it stands again. Its successor announces itself
 * to the resigned node. If no announcement arrives, the resigned node keeps asking who the leader is (`inquire`) until
 * the leader answers. Ranks replace ids. A node whose rank changes notifies all peers, and an election is called once
 * they have received the new rank.
 *
 * Self-correction costs no messages: a node that follows j suspects every node above j and reports each of them
 * (`suspected`). With a failure detector, this repairs the effects of exceeding the bound T: once the detector receives
 * a message from a node above j (`restored`), that node bullies j away. Without reliable links, the repair may never
 * end: if a link works in only one direction, an election is called at every heartbeat.
 */
import type { Context, NodeId, Protocol, World } from "../../../core/protocol.ts";
import { natural, real } from "../../../core/shape.ts";
import { exclude, include } from "../../node-set.ts";
import { type OptionsOf, optionTable } from "../../options.ts";
import { highestOf, outranks, type Ranked, ranksOption, settledRank } from "../parts/ranks.ts";
import { bullyTimeouts, delayOptions } from "./bully.ts";
import { bullyCosts, bullyProperties, bullyRole, isElecting } from "./properties.ts";

/** Vocabulary of the extended bully election. */
export type ExtendedBully = {
  state: {
    /** `new`: the node has not taken part in an election yet. */
    phase: "new" | "idle" | "campaigning" | "deferring";
    leader: NodeId | null;
    /** In ascending order. */
    suspected: NodeId[];
    /** Nodes that have resigned and are not candidates, in ascending order. May include the node itself. */
    resigned: NodeId[];
    /** Ranks that have changed since the start, keyed by node. May include the node's own rank. */
    ranks: Record<NodeId, number>;
  };
  message:
    | { type: "election" }
    | { type: "answer" }
    | { type: "coordinator" }
    /** Announces that the sender resigns. */
    | { type: "resign" }
    /** Announces that the sender is a candidate again. */
    | { type: "stand" }
    /** Asks who the leader is. Sent by a node that has resigned. */
    | { type: "inquire" }
    /** Announces the sender's new rank. */
    | { type: "rank"; rank: number };
  timer: "answer" | "coordinator" | "rank";
  command:
    | { type: "suspect"; node: NodeId }
    | { type: "restore"; node: NodeId }
    /** Calls an election, even if the node has a leader. */
    | { type: "call" }
    /** Steps down as leader, or withdraws the node's candidacy before it is elected. */
    | { type: "resign" }
    /** Withdraws a resignation. */
    | { type: "stand" }
    /** Sets the rank of this node. An election is called once all peers have received it. */
    | { type: "rank"; rank: number };
  event:
    | { type: "elected"; leader: NodeId }
    /** Reports that a node is suspected because it did not answer, or because a lower node announced itself. */
    | { type: "suspected"; node: NodeId }
    /** Reports that a suspected node has just sent a message. */
    | { type: "heard"; node: NodeId };
};

const bullyOptions = optionTable("bully", { ...delayOptions, ranks: ranksOption });

/** Options for `extendedBully()`. */
export type ExtendedBullyOptions = OptionsOf<typeof bullyOptions>;

type State = ExtendedBully["state"];
type Ctx = Context<ExtendedBully>;

/** Creates the extended bully election. @throws UsageError if an option is unknown or out of range. */
export function extendedBully(given?: Partial<ExtendedBullyOptions>): Protocol<ExtendedBully> {
  const options = bullyOptions.settle(given);
  const { answerMs, coordinatorMs } = bullyTimeouts(options);

  const rankAtFirst = settledRank(options.ranks);
  const ranked = (state: State, node: NodeId): Ranked => ({ node, rank: state.ranks[node] ?? rankAtFirst(node) });
  const isAbove = (state: State, a: NodeId, b: NodeId): boolean => outranks(ranked(state, a), ranked(state, b));
  const higher = (state: State, ctx: Ctx, than: NodeId): NodeId[] =>
    ctx.peers.filter((peer) => isAbove(state, peer, than));
  const hasResigned = (state: State, node: NodeId): boolean => state.resigned.includes(node);
  const mayNotLead = (state: State, node: NodeId): boolean =>
    state.suspected.includes(node) || hasResigned(state, node);
  const isHighest = (state: State, ctx: Ctx): boolean =>
    higher(state, ctx, ctx.self).every((rival) => mayNotLead(state, rival));

  function startElection(state: State, ctx: Ctx): void {
    if (hasResigned(state, ctx.self)) return inquire(state, ctx);
    // This node knows that it is the highest, so it needs no election.
    if (isHighest(state, ctx)) return becomeCoordinator(state, ctx);
    state.phase = "campaigning";
    state.leader = null;
    for (const rival of higher(state, ctx, ctx.self)) {
      // The message also goes to suspected nodes, as in the book.
      if (!hasResigned(state, rival)) ctx.send(rival, { type: "election" });
    }
    ctx.cancelTimer("coordinator");
    ctx.setTimer("answer", answerMs);
  }

  function becomeCoordinator(state: State, ctx: Ctx): void {
    for (const peer of ctx.peers) {
      // Resigned nodes also receive the announcement, even if they rank higher.
      if (isAbove(state, ctx.self, peer) || hasResigned(state, peer)) ctx.send(peer, { type: "coordinator" });
    }
    settleOn(ctx.self, state, ctx);
  }

  /** Asks all peers who the leader is, until the leader answers. Used by a resigned node that has no leader. */
  function inquire(state: State, ctx: Ctx): void {
    awaitLeader(state, ctx);
    ctx.broadcast({ type: "inquire" });
  }

  /**
   * Waits for a leader to announce itself, if there is a candidate. If the announcement is lost, this node asks for it.
   */
  function awaitLeader(state: State, ctx: Ctx): void {
    settleOn(null, state, ctx);
    if (ctx.peers.some((peer) => !mayNotLead(state, peer))) ctx.setTimer("coordinator", coordinatorMs);
  }

  /** Ends the election at this node. */
  function settleOn(leader: NodeId | null, state: State, ctx: Ctx): void {
    const isNews = leader !== null && leader !== state.leader;
    state.phase = "idle";
    state.leader = leader;
    ctx.cancelTimer("answer");
    ctx.cancelTimer("coordinator");
    if (isNews) ctx.emit({ type: "elected", leader });
    if (leader === null) return;
    for (const silent of higher(state, ctx, leader)) {
      if (mayNotLead(state, silent)) continue;
      include(state.suspected, silent);
      ctx.emit({ type: "suspected", node: silent });
    }
  }

  /** Notes that `node` is a candidate: it is alive and has not resigned, or has withdrawn its resignation. */
  function noteCandidate(state: State, node: NodeId, ctx: Ctx): void {
    if (state.suspected.includes(node)) ctx.emit({ type: "heard", node });
    exclude(state.suspected, node);
    exclude(state.resigned, node);
  }

  return {
    name: "bully",
    init: () => ({ phase: "new", leader: null, suspected: [], resigned: [], ranks: {} }),
    start: startElection, // A (re)starting node cannot know the leader, so it bullies.
    receive: {
      election(state, from, _message, ctx) {
        noteCandidate(state, from, ctx);
        if (hasResigned(state, ctx.self)) return ctx.send(from, { type: "resign" });
        ctx.send(from, { type: "answer" });
        if (!isElecting(state)) startElection(state, ctx);
      },
      answer(state, from, _message, ctx) {
        noteCandidate(state, from, ctx);
        if (state.phase !== "campaigning") return; // A late answer: this election is over.
        state.phase = "deferring";
        ctx.cancelTimer("answer");
        ctx.setTimer("coordinator", coordinatorMs);
      },
      coordinator(state, from, _message, ctx) {
        noteCandidate(state, from, ctx);
        // Announcements go only to lower nodes and to resigned nodes. So `from` wrongly believes that this node has
        // resigned.
        if (isAbove(state, ctx.self, from) && !hasResigned(state, ctx.self)) return startElection(state, ctx);
        settleOn(from, state, ctx);
      },
      resign(state, from, _message, ctx) {
        const isNews = !hasResigned(state, from);
        include(state.resigned, from);
        if (state.leader !== from && !(isNews && state.phase === "campaigning")) return;
        if (hasResigned(state, ctx.self)) awaitLeader(state, ctx);
        else startElection(state, ctx);
      },
      // Without this message, both nodes would announce themselves after losing the leader above them.
      stand: (state, from, _message, ctx) => noteCandidate(state, from, ctx),
      inquire(state, from, _message, ctx) {
        include(state.resigned, from);
        if (state.leader === ctx.self) return ctx.send(from, { type: "coordinator" });
        if (hasResigned(state, ctx.self)) return ctx.send(from, { type: "resign" });
        const isLeaderless = state.leader === from || (state.leader === null && !isElecting(state));
        if (isLeaderless) startElection(state, ctx);
      },
      rank(state, from, { rank }) {
        state.ranks[from] = rank;
      },
    },
    timeout: {
      answer: becomeCoordinator, // No higher node is alive.
      coordinator: startElection, // The node that answered crashed before announcing itself.
      rank(state, ctx) {
        // By now, announcements based on the old rank have arrived.
        if (!hasResigned(state, ctx.self)) startElection(state, ctx);
      },
    },
    command: {
      suspect(state, { node }, ctx) {
        if (!ctx.peers.includes(node)) return; // The node is not a member.
        exclude(state.resigned, node); // Resignations and changed ranks do not survive a crash.
        delete state.ranks[node];
        include(state.suspected, node);
        if (node === state.leader || (isElecting(state) && isHighest(state, ctx))) startElection(state, ctx);
      },
      restore(state, { node }, ctx) {
        exclude(state.suspected, node);
        const own = state.ranks[ctx.self];
        if (own !== undefined) {
          ctx.send(node, { type: "rank", rank: own });
          ctx.setTimer("rank", 2 * answerMs);
        }
        // The restored node may have missed the announcement.
        if (state.leader === ctx.self && isAbove(state, ctx.self, node)) return ctx.send(node, { type: "coordinator" });
        // A node above the leader is alive after all: a partition has healed, or a bound was exceeded.
        const isWrong = state.leader !== null && isAbove(state, node, state.leader);
        const mayTell = state.leader === null && hasResigned(state, ctx.self);
        if (isWrong || mayTell) startElection(state, ctx);
      },
      call: (state, _command, ctx) => startElection(state, ctx),
      resign(state, _command, ctx) {
        if (hasResigned(state, ctx.self)) return;
        include(state.resigned, ctx.self);
        ctx.broadcast({ type: "resign" });
        if (state.leader === ctx.self || isElecting(state)) awaitLeader(state, ctx);
      },
      stand(state, _command, ctx) {
        if (hasResigned(state, ctx.self)) ctx.broadcast({ type: "stand" });
        exclude(state.resigned, ctx.self);
        startElection(state, ctx);
      },
      rank(state, { rank }, ctx) {
        state.ranks[ctx.self] = rank;
        ctx.broadcast({ type: "rank", rank });
        // A node that has not yet received the new rank may announce itself within T, and its announcement takes time
        // to arrive.
        ctx.setTimer("rank", 2 * answerMs);
      },
    },
    shapes: {
      message: { election: {}, answer: {}, coordinator: {}, resign: {}, stand: {}, inquire: {}, rank: { rank: real } },
      command: {
        suspect: { node: natural },
        restore: { node: natural },
        call: {},
        resign: {},
        stand: {},
        rank: { rank: real },
      },
    },
    source: "García-Molina, IEEE ToC 1982; Coulouris et al. §15.3",
    assumes: ["crash-recovery nodes", "reliable links", "bounded delay: T = 2·T_max + T_process exceeds a round trip"],
    properties: bullyProperties<ExtendedBully>(["answer", "coordinator", "rank"], {
      of: (world) => highestStanding(world, ranked),
      words: "the alive candidate with the highest rank",
    }),
    costs: bullyCosts,
    view: (state, self) => ({ role: roleOf(state, self), leader: state.leader }),
  };
}

/** A function that returns a node's rank according to that node's own state. */
type OwnRank = (state: State, node: NodeId) => Ranked;

function roleOf(state: State, self: NodeId): string {
  return state.resigned.includes(self) ? "resigned" : bullyRole(state, self);
}

function highestStanding({ alive, state }: World<State>, ownRank: OwnRank): NodeId | null {
  const standing = alive.filter((node) => !state(node).resigned.includes(node));
  return highestOf(standing.map((node) => ownRank(state(node), node)))?.node ?? null;
}
