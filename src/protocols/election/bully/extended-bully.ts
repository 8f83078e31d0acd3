/**
 * Bully as processes and `join()` run it: with resignation, ranks that change, and self-correction. The book's is `bully.ts`.
 *
 * A node that resigns tells everybody and is no candidate until it stands again; it learns of its successor, or asks
 * (`inquire`) until the leader answers. A rank takes the place of the id; a node whose rank changes tells everybody, and
 * an election is called when everybody knows it.
 *
 * Self-correction costs no message: a node that follows j suspects every node above j and says so (`suspected`). Fed to a
 * failure detector, this mends what a missed bound T broke: the node above j is heard of again, `restored`, and bullies j
 * away. Where links are not reliable it may go on: over a link that works one way only, an election is called again at
 * every beat for as long as that lasts.
 */
import type { Context, NodeId, Protocol, World } from "../../../core/protocol.ts";
import { natural, real } from "../../../core/shape.ts";
import { exclude, include } from "../../node-set.ts";
import { type OptionsOf, optionTable } from "../../options.ts";
import { highestOf, outranks, type Ranked, ranksOption, settledRank } from "../parts/ranks.ts";
import { bullyTimeouts, delayOptions } from "./bully.ts";
import { bullyCosts, bullyProperties, bullyRole, isElecting } from "./properties.ts";

export type ExtendedBully = {
  state: {
    /** `new`: has not taken part in an election yet. */
    phase: "new" | "idle" | "campaigning" | "deferring";
    leader: NodeId | null;
    /** Ascending. */
    suspected: NodeId[];
    /** Who has resigned and is no candidate; may hold the node itself. Ascending. */
    resigned: NodeId[];
    /** By node, its own among them: the ranks that were changed since the start. */
    ranks: Record<NodeId, number>;
  };
  message:
    | { type: "election" }
    | { type: "answer" }
    | { type: "coordinator" }
    /** The sender resigns. */
    | { type: "resign" }
    /** The sender stands again. */
    | { type: "stand" }
    /** The sender has resigned and asks who leads. */
    | { type: "inquire" }
    /** The sender's rank from now on. */
    | { type: "rank"; rank: number };
  timer: "answer" | "coordinator" | "rank";
  command:
    | { type: "suspect"; node: NodeId }
    | { type: "restore"; node: NodeId }
    /** Calls an election, whatever the node believes. */
    | { type: "call" }
    /** Steps down, or resigns before it was elected. */
    | { type: "resign" }
    /** Takes a resignation back. */
    | { type: "stand" }
    /** Its rank from now on. An election is called when everybody knows it. */
    | { type: "rank"; rank: number };
  event:
    | { type: "elected"; leader: NodeId }
    /** Suspected, as it did not answer or another was announced below it. */
    | { type: "suspected"; node: NodeId }
    /** Suspected before, and it has just sent a message. */
    | { type: "heard"; node: NodeId };
};

const bullyOptions = optionTable("bully", { ...delayOptions, ranks: ranksOption });

export type ExtendedBullyOptions = OptionsOf<typeof bullyOptions>;

type State = ExtendedBully["state"];
type Ctx = Context<ExtendedBully>;

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
    if (isHighest(state, ctx)) return becomeCoordinator(state, ctx); // It knows that: no need to ask.
    state.phase = "campaigning";
    state.leader = null;
    for (const rival of higher(state, ctx, ctx.self)) {
      if (!hasResigned(state, rival)) ctx.send(rival, { type: "election" }); // The suspected are asked too, as in the book.
    }
    ctx.cancelTimer("coordinator");
    ctx.setTimer("answer", answerMs);
  }

  function becomeCoordinator(state: State, ctx: Ctx): void {
    for (const peer of ctx.peers) {
      // A node that resigned learns of its successor, though it ranks higher.
      if (isAbove(state, ctx.self, peer) || hasResigned(state, peer)) ctx.send(peer, { type: "coordinator" });
    }
    settleOn(ctx.self, state, ctx);
  }

  /** Has resigned and does not know who leads: asks everybody, until the leader answers. */
  function inquire(state: State, ctx: Ctx): void {
    awaitLeader(state, ctx);
    ctx.broadcast({ type: "inquire" });
  }

  /** Has resigned and will be told, if there is anybody who may lead. If that gets lost, it asks. */
  function awaitLeader(state: State, ctx: Ctx): void {
    settleOn(null, state, ctx);
    if (ctx.peers.some((peer) => !mayNotLead(state, peer))) ctx.setTimer("coordinator", coordinatorMs);
  }

  /** The election is over for this node. */
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

  /** `node` takes part in elections: it is alive and has not resigned, or no longer. */
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
        // Only to the lower and to those resigned: so `from` took this node for resigned, and it is not, or no longer.
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
      // A node that took it for resigned would announce itself too, once the leader above both is gone.
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
      answer: becomeCoordinator, // Nobody higher is alive.
      coordinator: startElection, // The node that answered died before announcing itself.
      rank(state, ctx) {
        if (!hasResigned(state, ctx.self)) startElection(state, ctx); // What was announced in ignorance has arrived.
      },
    },
    command: {
      suspect(state, { node }, ctx) {
        if (!ctx.peers.includes(node)) return; // Not one of the members.
        exclude(state.resigned, node); // A resignation does not outlive a crash, nor does a change of rank.
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
        // It may have missed the announcement.
        if (state.leader === ctx.self && isAbove(state, ctx.self, node)) return ctx.send(node, { type: "coordinator" });
        // Somebody above the leader is alive after all: a partition has healed, or a bound was missed.
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
        // A node that does not know it yet may announce itself within T, and the announcement travels.
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
      words: "the highest alive node that stands",
    }),
    costs: bullyCosts,
    view: (state, self) => ({ role: roleOf(state, self), leader: state.leader }),
  };
}

/** With the rank that a node gives itself. */
type OwnRank = (state: State, node: NodeId) => Ranked;

function roleOf(state: State, self: NodeId): string {
  return state.resigned.includes(self) ? "resigned" : bullyRole(state, self);
}

function highestStanding({ alive, state }: World<State>, ownRank: OwnRank): NodeId | null {
  const standing = alive.filter((node) => !state(node).resigned.includes(node));
  return highestOf(standing.map((node) => ownRank(state(node), node)))?.node ?? null;
}
