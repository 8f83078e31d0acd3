/**
 * The version of Chang–Roberts election that real processes and `join()` run. It adds rounds, ranks, resignation and
 * crash notifications to the paper's version in `chang-roberts.ts`.
 *
 * E1 holds for the highest rank in each round, and links need not be FIFO.
 *
 * The additions cost no messages. Each election is a numbered round, so nodes recognize messages from earlier
 * elections, and reordered and duplicate messages are harmless. Each election message carries the rank to compare. A
 * node that is notified of a crash (`suspect`) skips the suspected node. If that node was its successor or the leader,
 * it also calls the next round, because messages from this round may have been lost in the crash.
 */
import type { Context, NodeId, Property, Protocol, World } from "../../../core/protocol.ts";
import { natural, real } from "../../../core/shape.ts";
import { exclude, include } from "../../node-set.ts";
import { type OptionsOf, optionTable } from "../../options.ts";
import {
  highestOf,
  outranks,
  type Ranked,
  ranksOption,
  ringOption,
  ringOrder,
  settledRank,
  standingRank,
} from "../parts/ranks.ts";
import { changRobertsCosts, changRobertsLiveness } from "./chang-roberts.ts";

/** Vocabulary of the extended Chang–Roberts election. */
export type ExtendedChangRoberts = {
  state: {
    part: "participant" | "non-participant";
    /** Null represents ⊥. */
    elected: NodeId | null;
    /** The next clockwise node that is not suspected. */
    next: NodeId;
    /** The latest election that the node knows of; 0 before the first. */
    round: number;
    /** `rank` is used in future elections, `stoodWith` in the current round. */
    rank: number;
    stoodWith: number;
    /** Whether the node has resigned. It then takes part with the lowest possible rank. */
    resigned: boolean;
    /** In ascending order. */
    suspected: NodeId[];
  };
  message:
    | { type: "election"; id: NodeId; rank: number; round: number }
    | { type: "elected"; id: NodeId; round: number };
  command: /** Calls an election. */
    | { type: "call" }
    | { type: "suspect"; node: NodeId }
    | { type: "restore"; node: NodeId }
    /** Sets the rank for future elections. */
    | { type: "rank"; rank: number }
    /** Resigns. A resigning leader calls an election to choose its successor. */
    | { type: "resign" }
    /** Withdraws a resignation. */
    | { type: "stand" };
  event: { type: "elected"; leader: NodeId };
};

const changRobertsOptions = optionTable("chang-roberts", { ring: ringOption, ranks: ranksOption });

/** Options for `extendedChangRoberts()`. */
export type ExtendedChangRobertsOptions = OptionsOf<typeof changRobertsOptions>;

type State = ExtendedChangRoberts["state"];
type Ctx = Context<ExtendedChangRoberts>;

/**
 * Creates the extended Chang–Roberts election.
 * @throws UsageError if an option is unknown or out of range, or at `init` if the ring does not list every node once.
 */
export function extendedChangRoberts(given?: Partial<ExtendedChangRobertsOptions>): Protocol<ExtendedChangRoberts> {
  const options = changRobertsOptions.settle(given);
  const neighbour = ringOrder("chang-roberts.ring", options.ring);
  const rankAtFirst = settledRank(options.ranks);

  /** Returns the next clockwise node that is not suspected, or the node itself if it suspects all others. */
  function nextAlive(state: State, ctx: Ctx): NodeId {
    for (let steps = 1; steps <= ctx.peers.length; steps++) {
      const node = neighbour(ctx.self, ctx.peers, steps);
      if (!state.suspected.includes(node)) return node;
    }
    return ctx.self;
  }

  function call(state: State, ctx: Ctx): void {
    join(state, state.round + 1);
    if (state.next === ctx.self)
      settleOn(state, ctx.self, ctx); // This node is alone on the ring.
    else forward(state, { node: ctx.self, rank: state.stoodWith }, ctx);
  }

  function join(state: State, round: number): void {
    state.round = round;
    state.part = "non-participant";
    state.elected = null;
    state.stoodWith = standingRank(state);
  }

  function forward(state: State, { node: id, rank }: Ranked, ctx: Ctx): void {
    state.part = "participant";
    ctx.send(state.next, { type: "election", id, rank, round: state.round });
  }

  function settleOn(state: State, leader: NodeId, ctx: Ctx): void {
    state.part = "non-participant";
    state.elected = leader;
    ctx.emit({ type: "elected", leader });
  }

  return {
    name: "chang-roberts",
    init(self, peers) {
      const rank = rankAtFirst(self);
      const next = neighbour(self, peers, 1);
      return {
        part: "non-participant",
        elected: null,
        next,
        round: 0,
        rank,
        stoodWith: rank,
        resigned: false,
        suspected: [],
      };
    },
    receive: {
      election(state, _from, { id, rank, round }, ctx) {
        if (round < state.round) return; // A message from an earlier election.
        // The id would never get back to its node, which has crashed.
        if (state.suspected.includes(id)) return call(state, ctx);
        if (round > state.round) join(state, round);
        else if (state.elected !== null) return; // A duplicate: this round is over.
        const candidate = { node: id, rank };
        const own = { node: ctx.self, rank: state.stoodWith };
        if (outranks(candidate, own)) return forward(state, candidate, ctx);
        if (id !== ctx.self) {
          if (state.part === "non-participant") forward(state, own, ctx);
          return; // A participant swallows lower ids, because its own or a higher id is already on its way.
        }
        settleOn(state, ctx.self, ctx); // No id is higher, so this node is the coordinator.
        ctx.send(state.next, { type: "elected", id, round });
      },
      elected(state, _from, { id, round }, ctx) {
        if (round < state.round || (round === state.round && state.elected !== null)) return; // It has gone around.
        if (state.suspected.includes(id)) return call(state, ctx); // The coordinator has crashed.
        if (round > state.round) join(state, round);
        settleOn(state, id, ctx);
        ctx.send(state.next, { type: "elected", id, round });
      },
    },
    command: {
      call(state, _command, ctx) {
        if (state.part === "non-participant") call(state, ctx); // Otherwise, an election is already in progress.
      },
      suspect(state, { node }, ctx) {
        if (!ctx.peers.includes(node) || state.suspected.includes(node)) return;
        include(state.suspected, node);
        const wasNext = state.next === node;
        state.next = nextAlive(state, ctx);
        if (state.round === 0) return; // No election has been called yet.
        if (wasNext || state.elected === node) call(state, ctx); // Messages may have been lost in the crash.
      },
      restore(state, { node }, ctx) {
        if (!state.suspected.includes(node)) return;
        exclude(state.suspected, node);
        state.next = nextAlive(state, ctx);
        // The restored node knows neither the round nor the leader.
        if (state.next === node && state.round > 0) call(state, ctx);
      },
      rank(state, { rank }) {
        state.rank = rank;
      },
      resign(state, _command, ctx) {
        if (state.resigned) return;
        state.resigned = true;
        // The current round may still elect a resigning participant. The next round corrects that.
        if (state.elected === ctx.self || state.part === "participant") call(state, ctx);
      },
      stand(state, _command, ctx) {
        if (!state.resigned) return;
        state.resigned = false;
        call(state, ctx);
      },
    },
    shapes: {
      message: {
        election: { id: natural, rank: real, round: natural },
        elected: { id: natural, round: natural },
      },
      command: {
        call: {},
        suspect: { node: natural },
        restore: { node: natural },
        rank: { rank: real },
        resign: {},
        stand: {},
      },
    },
    source: "Chang & Roberts, CACM 1979; Coulouris et al. §15.3",
    assumes: ["no crashes during an election", "reliable links", "all nodes agree on the ring"],
    properties,
    costs: [
      ...changRobertsCosts,
      { when: "the leader resigns, its successor is next on the ring", messages: (nodes) => 2 * nodes + 1 },
      { when: "the leader resigns, its successor is last on the ring", messages: (nodes) => 3 * nodes - 1 },
    ],
    view: (state, self) => ({ role: roleOf(state, self), leader: state.elected }),
  };
}

const properties: Property<ExtendedChangRoberts>[] = [
  {
    name: "E1 safety",
    claim: "a node that follows an alive node follows the alive node with the highest rank",
    when: "always",
    holds(world) {
      let known: State | null = null; // The last result that was checked. Most nodes have the same one.
      for (const node of world.alive) {
        const says = world.state(node);
        if (says.elected === null || (says.elected === known?.elected && says.round === known.round)) continue;
        if (!rankedHighest(world, says.elected, says.round)) return false;
        known = says;
      }
      return true;
    },
  },
  {
    name: "E1 eventually",
    claim:
      "eventually, every alive node that took part in an election follows the one with the highest rank among them",
    when: "eventually",
    holds({ alive, state }) {
      const part = alive.filter((node) => state(node).round > 0);
      const highest = highestOf(part.map((node) => ({ node, rank: state(node).stoodWith })))?.node;
      return part.every((node) => state(node).elected === highest);
    },
  },
  ...(changRobertsLiveness as unknown as Property<ExtendedChangRoberts>[]),
];

/**
 * Whether the leader ranks highest in its round. Also true if the leader has crashed or has joined a later round,
 * possibly with a different rank.
 */
function rankedHighest({ alive, state }: World<State>, leader: NodeId, round: number): boolean {
  if (!alive.includes(leader) || state(leader).round !== round) return true;
  const top = { node: leader, rank: state(leader).stoodWith };
  return alive.every((node) => {
    const other = state(node);
    return other.round !== round || !outranks({ node, rank: other.stoodWith }, top);
  });
}

function roleOf({ part, elected, resigned }: State, self: NodeId): string {
  if (part === "participant" || elected === null) return part;
  if (resigned && elected !== self) return "resigned";
  return elected === self ? "leader" : "follower";
}
