/**
 * Chang–Roberts: on a ring, only the highest id gets back to its own node.
 * Chang & Roberts, "An Improved Algorithm for Decentralized Extrema-Finding in Circular Configurations of Processes",
 * CACM 1979; terms of Coulouris et al. §15.3.
 *
 * Assumes   no crashes; reliable FIFO links; all nodes agree on the ring.
 * Safety    E1: a node that has elected a leader has elected the highest node.
 * Liveness  E2: every election ends, and then every node has elected a leader and no node is a participant.
 * Cost      one caller: from 2N messages (the highest node calls) to 3N − 1 (the node after the highest calls).
 *           All nodes call at once: N(N + 1)/2 + N if ids descend clockwise; N·H(N) + N on average over all ring
 *           orders.
 *
 * `extended-chang-roberts.ts` adds rounds, ranks, resignation and crash notifications. Real processes run that one.
 */
import type { Context, NodeId, Property, Protocol } from "../../../core/protocol.ts";
import { natural } from "../../../core/shape.ts";
import { type OptionsOf, optionTable } from "../../options.ts";
import { ringOption, ringOrder } from "../parts/ranks.ts";

/** Vocabulary of the Chang–Roberts election. */
export type ChangRoberts = {
  state: {
    part: "participant" | "non-participant";
    /** Null represents ⊥. */
    elected: NodeId | null;
  };
  message: { type: "election"; id: NodeId } | { type: "elected"; id: NodeId };
  command: /** Calls an election. */ { type: "call" };
  event: { type: "elected"; leader: NodeId };
};

const changRobertsOptions = optionTable("chang-roberts", { ring: ringOption });

/** Options for `changRoberts()`. */
export type ChangRobertsOptions = OptionsOf<typeof changRobertsOptions>;

type State = ChangRoberts["state"];
type Ctx = Context<ChangRoberts>;

/**
 * Creates the textbook Chang–Roberts election.
 * @throws UsageError if an option is unknown, or at `init` if the ring does not list every node once.
 */
export function changRoberts(given?: Partial<ChangRobertsOptions>): Protocol<ChangRoberts> {
  const { ring } = changRobertsOptions.settle(given);
  const neighbour = ringOrder("chang-roberts.ring", ring);
  const next = ({ self, peers }: Ctx): NodeId => neighbour(self, peers, 1);

  function forward(state: State, id: NodeId, ctx: Ctx): void {
    state.part = "participant";
    state.elected = null;
    ctx.send(next(ctx), { type: "election", id });
  }

  function settleOn(state: State, leader: NodeId, ctx: Ctx): void {
    state.part = "non-participant";
    state.elected = leader;
    ctx.emit({ type: "elected", leader });
  }

  return {
    name: "chang-roberts",
    init(self, peers) {
      neighbour(self, peers, 1); // Throws if the ring is invalid.
      return { part: "non-participant", elected: null };
    },
    receive: {
      election(state, _from, { id }, ctx) {
        if (id > ctx.self) return forward(state, id, ctx);
        if (id < ctx.self) {
          if (state.part === "non-participant") forward(state, ctx.self, ctx);
          return; // A participant swallows lower ids, because its own or a higher id is already on its way.
        }
        if (state.part === "non-participant") return; // A duplicate of an id that has already gone around the ring.
        settleOn(state, ctx.self, ctx); // No id is higher, so this node is the coordinator.
        ctx.send(next(ctx), { type: "elected", id });
      },
      elected(state, _from, { id }, ctx) {
        if (state.elected === id) return; // The message has gone around the ring.
        settleOn(state, id, ctx);
        ctx.send(next(ctx), { type: "elected", id });
      },
    },
    command: {
      call(state, _command, ctx) {
        if (state.part === "participant") return; // An election is already in progress.
        if (ctx.peers.length === 0) settleOn(state, ctx.self, ctx);
        else forward(state, ctx.self, ctx);
      },
    },
    shapes: { message: { election: { id: natural }, elected: { id: natural } }, command: { call: {} } },
    source: "Chang & Roberts, CACM 1979; Coulouris et al. §15.3",
    assumes: ["no crashes", "reliable FIFO links", "all nodes agree on the ring"],
    properties,
    costs: changRobertsCosts,
    view: ({ part, elected }, self) => ({
      role: part === "participant" || elected === null ? part : elected === self ? "leader" : "follower",
      leader: elected,
    }),
  };
}

/** The costs stated in the textbook. */
export const changRobertsCosts = [
  { when: "the highest node starts the election", messages: (nodes: number) => 2 * nodes },
  { when: "the node after the highest starts the election", messages: (nodes: number) => 3 * nodes - 1 },
  {
    when: "all nodes start an election, ids descend clockwise",
    messages: (nodes: number) => (nodes * (nodes + 1)) / 2 + nodes,
  },
  { when: "all nodes start an election, ids ascend clockwise", messages: (nodes: number) => 3 * nodes - 1 },
];

/** The liveness properties stated in the textbook. */
export const changRobertsLiveness: Property<ChangRoberts>[] = [
  {
    name: "E2 liveness",
    claim: "when idle, no node is a participant, and either every node or no node has elected a leader",
    when: "quiescent",
    holds({ alive, state }) {
      const knowing = alive.filter((node) => state(node).elected !== null).length;
      const hasEnded = alive.every((node) => state(node).part === "non-participant");
      return hasEnded && (knowing === alive.length || knowing === 0);
    },
  },
  {
    name: "E2 termination",
    claim: "every participant eventually elects a leader",
    when: "leadsTo",
    given: ({ state }, node) => state(node).part === "participant",
    holds: ({ state }, node) => state(node).part === "non-participant",
  },
];

const properties: Property<ChangRoberts>[] = [
  {
    name: "E1 safety",
    claim: "a node that has elected a leader has elected the highest node",
    when: "always",
    holds: ({ nodes, alive, state }) =>
      alive.every((node) => state(node).elected === null || state(node).elected === nodes.at(-1)),
  },
  ...changRobertsLiveness,
];
