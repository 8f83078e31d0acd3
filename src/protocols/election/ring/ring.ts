/**
 * Ring election with a list: the election message collects the alive nodes, and the coordinator message announces the
 * leader.
 * Tanenbaum & van Steen, *Distributed Systems*, §6.5.1: the ring algorithm.
 *
 * Assumes   no crashes during an election; earlier crashes are reported to all nodes; reliable links; all nodes agree
 *           on the ring.
 * Safety    E1: when idle, every node that has a leader follows the highest alive node.
 * Liveness  E2: every election ends, and then every alive node has a leader.
 * Cost      2N messages for N alive nodes and one caller; 2N more for each other node that calls at the same time.
 *
 * `extended-ring.ts` adds receipts, numbered laps, ranks and resignation. Real processes run that one.
 */
import type { Context, NodeId, Property, Protocol } from "../../../core/protocol.ts";
import { list, natural } from "../../../core/shape.ts";
import { exclude, include } from "../../node-set.ts";
import { type OptionsOf, optionTable } from "../../options.ts";
import { ringOption, ringOrder } from "../parts/ranks.ts";

/**
 * The nodes collected by a message on its way around the ring, in ring order. The first is the lap's caller, which
 * removes the message.
 */
interface Lap {
  list: NodeId[];
}

/** Vocabulary of the ring election. */
export type Ring = {
  state: {
    phase: "idle" | "calling" | "taking part";
    leader: NodeId | null;
    /** In ascending order. */
    suspected: NodeId[];
  };
  message: ({ type: "election" } & Lap) | ({ type: "coordinator" } & Lap);
  command: /** Calls an election. */
  { type: "call" } | { type: "suspect"; node: NodeId } | { type: "restore"; node: NodeId };
  event: { type: "elected"; leader: NodeId };
};

const ringOptions = optionTable("ring", { ring: ringOption });

/** Options for `ring()`. */
export type RingOptions = OptionsOf<typeof ringOptions>;

type State = Ring["state"];
type Ctx = Context<Ring>;

/**
 * Creates the textbook ring election.
 * @throws UsageError if an option is unknown, or at `init` if the ring does not list every node once.
 */
export function ring(given?: Partial<RingOptions>): Protocol<Ring> {
  const options = ringOptions.settle(given);
  const neighbour = ringOrder("ring.ring", options.ring);

  /** Returns the next clockwise node that is not suspected, or the node itself if it suspects all others. */
  function successor(state: State, { self, peers }: Ctx): NodeId {
    for (let steps = 1; steps <= peers.length; steps++) {
      const node = neighbour(self, peers, steps);
      if (!state.suspected.includes(node)) return node;
    }
    return self;
  }

  function call(state: State, ctx: Ctx): void {
    state.leader = null;
    const next = successor(state, ctx);
    if (next === ctx.self) return follow(state, [ctx.self], ctx); // This node is alone on the ring.
    state.phase = "calling";
    ctx.send(next, { type: "election", list: [ctx.self] });
  }

  function follow(state: State, members: readonly NodeId[], ctx: Ctx): void {
    state.phase = "idle";
    state.leader = Math.max(...members);
    ctx.emit({ type: "elected", leader: state.leader });
  }

  return {
    name: "ring",
    init(self, peers) {
      neighbour(self, peers, 1); // Throws if the ring is invalid.
      return { phase: "idle", leader: null, suspected: [] };
    },
    receive: {
      election(state, _from, { list: members }, ctx) {
        if (members[0] === ctx.self) {
          if (state.phase !== "calling") return; // A duplicate: its announcement has already been sent.
          follow(state, members, ctx);
          return ctx.send(successor(state, ctx), { type: "coordinator", list: members });
        }
        if (members.includes(ctx.self)) return; // The message has gone around the ring without meeting its caller.
        if (state.phase === "idle") state.phase = "taking part";
        state.leader = null;
        ctx.send(successor(state, ctx), { type: "election", list: [...members, ctx.self] });
      },
      coordinator(state, _from, { list: members }, ctx) {
        if (members[0] === ctx.self || members.length === 0) return; // The message has gone around the ring.
        if (state.phase !== "calling") follow(state, members, ctx); // A caller waits for its own lap.
        ctx.send(successor(state, ctx), { type: "coordinator", list: members });
      },
    },
    command: {
      call(state, _command, ctx) {
        if (state.phase !== "calling") call(state, ctx); // Otherwise this node is already calling an election.
      },
      suspect(state, { node }, ctx) {
        include(state.suspected, node);
        if (state.leader === node) call(state, ctx);
      },
      restore: (state, { node }) => exclude(state.suspected, node),
    },
    shapes: {
      message: { election: { list: list(natural, 1_000) }, coordinator: { list: list(natural, 1_000) } },
      command: { call: {}, suspect: { node: natural }, restore: { node: natural } },
    },
    source: "Tanenbaum & van Steen, Distributed Systems, §6.5.1",
    assumes: ["no crashes during an election", "reliable links", "all nodes agree on the ring"],
    properties,
    costs: [
      { when: "one election", messages: (nodes) => (nodes === 1 ? 0 : 2 * nodes) },
      { when: "two concurrent elections", messages: (nodes) => 4 * nodes },
    ],
    view: ({ phase, leader }, self) => ({
      role: phase !== "idle" || leader === null ? phase : leader === self ? "leader" : "follower",
      leader,
    }),
  };
}

const isElecting = ({ phase }: State): boolean => phase !== "idle";

const properties: Property<Ring>[] = [
  {
    name: "E1 safety",
    claim: "when idle, every node that has a leader follows the highest alive node",
    when: "quiescent",
    holds: ({ alive, state }) =>
      alive.every((node) => state(node).leader === null || state(node).leader === alive.at(-1)),
  },
  {
    name: "E2 liveness",
    claim: "when idle, no election is in progress, and either every node or no node has a leader",
    when: "quiescent",
    holds({ alive, state }) {
      const knowing = alive.filter((node) => state(node).leader !== null).length;
      return !alive.some((node) => isElecting(state(node))) && (knowing === alive.length || knowing === 0);
    },
  },
  {
    name: "E2 termination",
    claim: "every election terminates",
    when: "leadsTo",
    given: ({ state }, node) => isElecting(state(node)),
    holds: ({ state }, node) => !isElecting(state(node)),
  },
];
