/**
 * Bully election: the alive node with the highest rank becomes coordinator.
 * García-Molina, "Elections in a Distributed Computing System", IEEE ToC 1982; words of Coulouris et al. §15.3.
 *
 * Assumes   crash-recovery nodes; reliable links; bounded delay: T = 2·T_max + T_process exceeds a round trip.
 * Safety    E1: at rest, whoever knows a leader knows the highest alive node that does not stand aside.
 * Liveness  E2: every election ends, and then every alive node knows a leader.
 * Cost      N − 2 messages at best (the second-highest notices and just announces itself);
 *           N² − N − 1 when the lowest calls the election and the highest has crashed.
 *
 * Beyond the textbook, and without a message more: whoever follows j holds every node above j for crashed and says so
 * (`presumed`). Fed to a failure detector, this mends what a missed bound T broke: the node above j is heard of again,
 * `restored`, and bullies j away.
 */

import type { Context, NodeId, Protocol, World } from "../../core/protocol.ts";
import { list, natural, real, struct } from "../../core/shape.ts";
import { exclude, include } from "../node-set.ts";
import { requirePositive, settle } from "../options.ts";

export type Bully = {
  state: {
    phase: "idle" | "campaigning" | "deferring";
    leader: NodeId | null;
    /** Held for crashed. Ascending. */
    suspected: NodeId[];
    /** Who resigned and does not stand for election; may hold the node itself. Ascending. */
    aside: NodeId[];
  };
  message: { type: "election" } | { type: "answer" } | { type: "coordinator" } | { type: "resign" };
  timer: "answer" | "coordinator";
  command:
    | { type: "suspect"; node: NodeId }
    | { type: "restore"; node: NodeId }
    /** Calls an election, whatever the node believes. */
    | { type: "call" }
    /** Steps down, or stands aside before it was elected. */
    | { type: "resign" }
    /** Takes a resignation back. */
    | { type: "stand" };
  event: { type: "elected"; leader: NodeId } | { type: "presumed"; node: NodeId };
};

export interface BullyOptions {
  /** T_max: the longest that a message travels. */
  maxDelayMs: number;
  /** T_process: the longest that a node takes to handle a message. */
  processMs: number;
  /** The rank of each node that has another than its id. Ties are broken by id. */
  ranks: readonly { node: NodeId; rank: number }[];
}

/** T = 180 ms: generous on one network segment, and short enough that a failover takes well under a second. */
const defaults: BullyOptions = { maxDelayMs: 60, processMs: 60, ranks: [] };

const optionShape = struct<BullyOptions>({
  maxDelayMs: real,
  processMs: real,
  ranks: list(struct<{ node: NodeId; rank: number }>({ node: natural, rank: real }), 1_000),
});

type State = Bully["state"];
type Ctx = Context<Bully>;

export function bully(given?: Partial<BullyOptions>): Protocol<Bully> {
  const options = settle(defaults, optionShape, given, "bully");
  requirePositive("bully.maxDelayMs", options.maxDelayMs);
  requirePositive("bully.processMs", options.processMs);

  /** T = 2·T_max + T_process: by then whoever is alive has answered. */
  const answerTimeoutMs = 2 * options.maxDelayMs + options.processMs;
  /** Whoever answered called an election itself: it waits T and announces, and both messages travel. */
  const coordinatorTimeoutMs = 2 * answerTimeoutMs;

  const ranks = new Map(options.ranks.map(({ node, rank }) => [node, rank]));
  const rank = (node: NodeId): number => ranks.get(node) ?? node;
  const outranks = (a: NodeId, b: NodeId): boolean => rank(a) > rank(b) || (rank(a) === rank(b) && a > b);
  const higher = (ctx: Ctx, than: NodeId): NodeId[] => ctx.peers.filter((peer) => outranks(peer, than));
  const standsAside = (state: State, node: NodeId): boolean => state.aside.includes(node);
  const isOut = (state: State, node: NodeId): boolean => state.suspected.includes(node) || standsAside(state, node);
  const isHighest = (state: State, ctx: Ctx): boolean => higher(ctx, ctx.self).every((rival) => isOut(state, rival));

  function startElection(state: State, ctx: Ctx): void {
    if (isHighest(state, ctx)) return becomeCoordinator(state, ctx); // It knows that: no need to ask.
    state.phase = "campaigning";
    state.leader = null;
    for (const rival of higher(ctx, ctx.self)) {
      if (!standsAside(state, rival)) ctx.send(rival, { type: "election" }); // The suspected are asked too, as in the book.
    }
    ctx.cancelTimer("coordinator");
    ctx.setTimer("answer", answerTimeoutMs);
  }

  function becomeCoordinator(state: State, ctx: Ctx): void {
    if (standsAside(state, ctx.self)) return settleOn(null, state, ctx);
    for (const peer of ctx.peers) {
      // Whoever resigned learns of its successor, though it ranks higher.
      if (outranks(ctx.self, peer) || standsAside(state, peer)) ctx.send(peer, { type: "coordinator" });
    }
    settleOn(ctx.self, state, ctx);
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
    for (const silent of higher(ctx, leader)) {
      if (isOut(state, silent)) continue;
      include(state.suspected, silent);
      ctx.emit({ type: "presumed", node: silent });
    }
  }

  function noteResignation(state: State, node: NodeId, ctx: Ctx): void {
    if (standsAside(state, node)) return; // Said already.
    include(state.aside, node);
    if (state.leader === node || state.phase === "campaigning") startElection(state, ctx);
  }

  /** `node` takes part in elections: it is alive and has not resigned, or no longer. */
  function noteCandidate(state: State, node: NodeId): void {
    exclude(state.suspected, node);
    exclude(state.aside, node);
  }

  return {
    name: "bully",
    init: () => ({ phase: "idle", leader: null, suspected: [], aside: [] }),
    start: startElection, // A (re)starting node cannot know the leader, so it bullies.
    receive: {
      election(state, from, _message, ctx) {
        noteCandidate(state, from);
        if (standsAside(state, ctx.self)) return ctx.send(from, { type: "resign" });
        ctx.send(from, { type: "answer" });
        if (state.phase === "idle") startElection(state, ctx);
      },
      answer(state, from, _message, ctx) {
        noteCandidate(state, from);
        if (state.phase !== "campaigning") return; // A late answer: this election is over.
        state.phase = "deferring";
        ctx.cancelTimer("answer");
        ctx.setTimer("coordinator", coordinatorTimeoutMs);
      },
      coordinator(state, from, _message, ctx) {
        noteCandidate(state, from);
        // Only to the lower and to those aside: so `from` took this node for resigned, and it is not, or no longer.
        if (outranks(ctx.self, from) && !standsAside(state, ctx.self)) return startElection(state, ctx);
        settleOn(from, state, ctx);
      },
      resign: (state, from, _message, ctx) => noteResignation(state, from, ctx),
    },
    timeout: {
      answer: becomeCoordinator, // Nobody higher is alive.
      coordinator: startElection, // Whoever answered died before announcing itself.
    },
    command: {
      suspect(state, { node }, ctx) {
        exclude(state.aside, node); // A resignation does not outlive a crash.
        include(state.suspected, node);
        if (node === state.leader || (state.phase !== "idle" && isHighest(state, ctx))) startElection(state, ctx);
      },
      restore(state, { node }, ctx) {
        exclude(state.suspected, node);
        // Somebody above the leader is alive after all: a partition has healed, or a bound was missed.
        if (state.leader !== null && outranks(node, state.leader)) startElection(state, ctx);
      },
      call: (state, _command, ctx) => startElection(state, ctx),
      resign(state, _command, ctx) {
        if (standsAside(state, ctx.self)) return;
        ctx.broadcast({ type: "resign" });
        noteResignation(state, ctx.self, ctx);
      },
      stand(state, _command, ctx) {
        exclude(state.aside, ctx.self);
        startElection(state, ctx);
      },
    },
    shapes: {
      message: { election: {}, answer: {}, coordinator: {}, resign: {} },
      command: {
        suspect: { node: natural },
        restore: { node: natural },
        call: {},
        resign: {},
        stand: {},
      },
    },
    source: "García-Molina, IEEE ToC 1982; Coulouris et al. §15.3",
    assumes: ["crash-recovery nodes", "reliable links", "bounded delay: T = 2·T_max + T_process exceeds a round trip"],
    properties: [
      {
        name: "E1 safety",
        claim: "at rest, nobody follows an alive node other than the highest one that stands",
        when: "atRest",
        restless: ["answer", "coordinator"],
        holds: (world) =>
          world.alive.every((node) => {
            const { leader } = world.state(node);
            return leader === null || !world.alive.includes(leader) || leader === highestStanding(world, outranks);
          }),
      },
      {
        name: "E2 liveness",
        claim: "at rest, every alive node knows a leader, or none was asked for, or everybody has resigned",
        when: "atRest",
        restless: ["answer", "coordinator"],
        holds(world) {
          const knowing = world.alive.filter((node) => world.state(node).leader !== null).length;
          return knowing === world.alive.length || knowing === 0 || highestStanding(world, outranks) === null;
        },
      },
    ],
    costs: [
      { when: "the second-highest notices the crash of the highest", messages: (nodes) => nodes - 2 },
      { when: "the lowest calls, the highest has crashed", messages: (nodes) => nodes * nodes - nodes - 1 },
    ],
    view: (state, self) => ({ role: roleOf(state, self), leader: state.leader }),
  };
}

function roleOf({ phase, leader, aside }: State, self: NodeId): string {
  if (aside.includes(self)) return "aside";
  if (leader === self) return "leader";
  if (phase !== "idle") return phase;
  return leader === null ? "idle" : "follower";
}

function highestStanding(world: World<State>, outranks: (a: NodeId, b: NodeId) => boolean): NodeId | null {
  const standing = world.alive.filter((node) => !world.state(node).aside.includes(node));
  return standing.reduce<NodeId | null>((top, node) => (top === null || outranks(node, top) ? node : top), null);
}
