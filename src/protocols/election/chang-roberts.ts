/**
 * Chang–Roberts: on a ring, the highest id is the only one that comes back to its node.
 * Chang & Roberts, "An Improved Algorithm for Decentralized Extrema-Finding in Circular Configurations of Processes",
 * CACM 1979; words of Coulouris et al. §15.3.
 *
 * Assumes   no crashes during an election; reliable FIFO links; everybody has the same ring.
 * Safety    E1: whoever has elected somebody has elected the highest.
 * Liveness  E2: every election ends, and then every node has elected somebody and nobody is a participant.
 * Cost      one caller: 2N (the highest itself) … 3N − 1 (the node after the highest).
 *           All at once: N(N + 1)/2 + N where ids descend in the direction of the ring; N·H(N) + N in the mean over all orders.
 */
import { UsageError, unexpected } from "../../core/errors.ts";
import type { Context, NodeId, Protocol } from "../../core/protocol.ts";
import { list, natural, struct } from "../../core/shape.ts";
import { settle } from "../options.ts";

export type ChangRoberts = {
  state: {
    part: "participant" | "non-participant";
    /** ⊥ is null. */
    elected: NodeId | null;
    /** The clockwise neighbour. */
    next: NodeId;
  };
  message: { type: "election"; id: NodeId } | { type: "elected"; id: NodeId };
  /** Calls an election. */
  command: { type: "call" };
  event: { type: "elected"; leader: NodeId };
};

export interface ChangRobertsOptions {
  /** Every node once, clockwise. Empty: ascending by id. */
  ring: readonly NodeId[];
}

const defaults: ChangRobertsOptions = { ring: [] };

const optionShape = struct<ChangRobertsOptions>({ ring: list(natural, 1_000_000) });

type State = ChangRoberts["state"];
type Ctx = Context<ChangRoberts>;

export function changRoberts(given?: Partial<ChangRobertsOptions>): Protocol<ChangRoberts> {
  const { ring } = settle(defaults, optionShape, given, "chang-roberts");
  const places = new Map(ring.map((node, place) => [node, place]));

  function neighbour(self: NodeId, peers: readonly NodeId[]): NodeId {
    if (ring.length === 0) return peers.find((peer) => peer > self) ?? peers[0] ?? self;
    const place = places.get(self);
    if (place === undefined || places.size !== peers.length + 1 || places.size !== ring.length)
      throw new UsageError("bad-option", unexpected("chang-roberts.ring", "every node once", ring));
    return ring[(place + 1) % ring.length] as NodeId;
  }

  function forward(state: State, id: NodeId, ctx: Ctx): void {
    state.part = "participant";
    state.elected = null;
    ctx.send(state.next, { type: "election", id });
  }

  function settleOn(state: State, leader: NodeId, ctx: Ctx): void {
    state.part = "non-participant";
    state.elected = leader;
    ctx.emit({ type: "elected", leader });
  }

  return {
    name: "chang-roberts",
    init: (self, peers) => ({ part: "non-participant", elected: null, next: neighbour(self, peers) }),
    receive: {
      election(state, _from, { id }, ctx) {
        if (id > ctx.self) return forward(state, id, ctx);
        if (id < ctx.self) {
          if (state.part === "non-participant") forward(state, ctx.self, ctx);
          return; // A participant swallows it: its own id, or a greater one, is on its way.
        }
        settleOn(state, ctx.self, ctx); // Nobody is greater: this node is the coordinator.
        ctx.send(state.next, { type: "elected", id });
      },
      elected(state, _from, { id }, ctx) {
        if (id === ctx.self) return; // It has gone round.
        settleOn(state, id, ctx);
        ctx.send(state.next, { type: "elected", id });
      },
    },
    command: {
      call(state, _command, ctx) {
        if (state.part === "participant") return; // An election goes on.
        if (state.next === ctx.self) return settleOn(state, ctx.self, ctx); // Alone on the ring.
        forward(state, ctx.self, ctx);
      },
    },
    shapes: {
      message: { election: { id: natural }, elected: { id: natural } },
      command: { call: {} },
    },
    source: "Chang & Roberts, CACM 1979; Coulouris et al. §15.3",
    assumes: ["no crashes during an election", "reliable FIFO links", "everybody has the same ring"],
    properties: [
      {
        name: "E1 safety",
        claim: "whoever has elected an alive node has elected the highest one",
        when: "always",
        holds: ({ alive, state }) =>
          alive.every((node) => {
            const { elected } = state(node);
            return elected === null || elected === alive.at(-1) || !alive.includes(elected);
          }),
      },
      {
        name: "E2 liveness",
        claim: "at rest nobody is a participant, and everybody has elected somebody unless nobody has",
        when: "atRest",
        holds({ alive, state }) {
          const knowing = alive.filter((node) => state(node).elected !== null).length;
          const hasEnded = alive.every((node) => state(node).part === "non-participant");
          return hasEnded && (knowing === alive.length || knowing === 0);
        },
      },
      {
        name: "E2 termination",
        claim: "every participant has elected somebody in the end",
        when: "leadsTo",
        given: ({ state }, node) => state(node).part === "participant",
        holds: ({ state }, node) => state(node).part === "non-participant",
      },
    ],
    costs: [
      { when: "the highest calls", messages: (nodes) => 2 * nodes },
      { when: "the node after the highest calls", messages: (nodes) => 3 * nodes - 1 },
      { when: "all call, ids descend clockwise", messages: (nodes) => (nodes * (nodes + 1)) / 2 + nodes },
      { when: "all call, ids ascend clockwise", messages: (nodes) => 3 * nodes - 1 },
    ],
    view: (state, self) => ({ role: roleOf(state, self), leader: state.elected }),
  };
}

function roleOf({ part, elected }: State, self: NodeId): string {
  if (part === "participant" || elected === null) return part;
  return elected === self ? "leader" : "follower";
}
