/**
 * Super-peers in a distributed hash table: the k leftmost bits of an identifier name a super-peer, and the node that is
 * responsible for `p AND 1…10…0` serves all nodes p in that region. Lo, Zhou, Liu, GauthierDickey & Li, "Scalable
 * Supernode Selection in Peer-to-Peer Overlay Networks", HOT-P2P 2005; terms of Tanenbaum & van Steen §6.5.3. The table
 * is Chord: Stoica et al., "Chord: A Scalable Peer-to-Peer Lookup Protocol for Internet Applications", IEEE/ACM ToN
 * 2003, with the repairs of Zave, IEEE TSE 2017.
 *
 * Assumes   crash-recovery nodes; bounded delay (answerMs exceeds a round trip, and roundMs exceeds answerMs); reliable
 *           links; a contact is a member whenever a node joins or has lost all its `successors` at once.
 * Safety    eventually, each reserved identifier has exactly one super-peer. While members are joining or leaving, it
 *           may have none or two.
 * Liveness  a node that joins becomes a member; eventually, each member uses its region's super-peer.
 * Cost      a lookup takes ½·log2 N hops on average, with two messages each. Per round, each member sends 2 messages to
 *           stabilize and 2 to ask its super-peer, and performs one lookup for a finger. On average, 2^(k−m)·N nodes
 *           have a reserved identifier as their own, but 2^k·(1 − (1 − 2^−k)^N) are responsible for one. That is 2^k if
 *           N is much larger. The two are equal only if every identifier has its node.
 */
import type { NodeId, Property, Protocol, World } from "../../../core/protocol.ts";
import { count, nodeIds, type OptionsOf, option, optionTable } from "../../options.ts";
import { lookups, owns, upkeep } from "./lookups.ts";
import {
  type Ctx,
  convergedRing,
  type IdentifierRing,
  identifierOptions,
  identifierRing,
  MAX_SUCCESSORS,
  type State,
  type SuperPeerDht,
  shapes,
  type Task,
} from "./vocabulary.ts";

/** Vocabulary of the super-peer election in a distributed hash table. */
export type { SuperPeerDht } from "./vocabulary.ts";

const nodes = nodeIds(1_000_000);

/** The option table of super-peer-dht. */
export const dhtOptions = optionTable("super-peer-dht", {
  ...identifierOptions,
  successors: count(4, "r, the number of successors that a member knows", { max: MAX_SUCCESSORS }),
  roundMs: count(500, "the time between two rounds"),
  answerMs: count(200, "how long a member waits for an answer during a lookup"),
  contacts: option(
    nodes,
    [],
    "the nodes that other nodes contact to join; the first live one founds the ring; if empty, the nodes with the three lowest ids",
  ),
  members: option(
    nodes,
    [],
    "the members of an initially converged ring, unless nodes start; if empty, there are none",
  ),
});

/** Options of `superPeerDht()`. */
export type SuperPeerDhtOptions = OptionsOf<typeof dhtOptions>;

const FEW_CONTACTS = 3;

/**
 * Whether a message names an unknown node, which only a Byzantine node does. Messages to an unknown node would go
 * nowhere.
 */
const namesStranger = (nodes: readonly (NodeId | null)[], { self, peers }: Ctx): boolean =>
  nodes.some((node) => node !== null && node !== self && !peers.includes(node));

/**
 * Creates the super-peer election in a distributed hash table.
 * @throws UsageError if an option is unknown or out of range.
 */
export function superPeerDht(given?: Partial<SuperPeerDhtOptions>): Protocol<SuperPeerDht> {
  const options = dhtOptions.settle(given);
  const { identifierBits, roundMs, answerMs, members } = options;
  const ring = identifierRing(options);
  const converged = members.length === 0 ? null : convergedRing(ring, members);
  const neighbourhood = upkeep(ring, options.successors);
  const searches = lookups({ ring, answerMs, contact: ({ contact }) => (contact < 0 ? null : contact), succeed });

  const outside = (): State => ({
    membership: "outside",
    contact: -1,
    yields: false,
    predecessor: null,
    silence: 0,
    successors: [],
    unanswered: 0,
    fingers: [],
    turn: 0,
    superPeer: null,
    lookup: null,
    waiting: [],
  });

  function init(self: NodeId): State {
    const state = outside();
    if (converged === null || !converged.includes(self)) return state;
    state.membership = "member";
    const others = Math.min(options.successors, members.length - 1);
    state.successors = Array.from({ length: others }, (_, i) => converged.neighbour(self, i + 1));
    state.predecessor = others === 0 ? null : converged.neighbour(self, -1);
    if (others === 0) state.successors = [self];
    state.fingers = Array.from({ length: identifierBits }, (_, i) => converged.ownerOf(ring.fingerPlace(self, i)));
    state.superPeer = converged.ownerOf(ring.placeOfKey(ring.reservedKey(self)));
    return state;
  }

  function join(state: State, ctx: Ctx): void {
    Object.assign(state, outside(), { membership: "joining" });
    ctx.cancelTimer("answer");
    tryContact(state, ctx);
    ctx.setTimer("round", roundMs);
  }

  /** Tries one contact per round. If none of them can help, the first live contact founds the ring. */
  function tryContact(state: State, ctx: Ctx): void {
    const contacts = options.contacts.length > 0 ? options.contacts : lowest(ctx);
    const place = state.contact < 0 ? -1 : contacts.indexOf(state.contact);
    const next = contacts.findIndex((node, i) => i > place && node !== ctx.self);
    if (next < 0) {
      state.contact = -1;
      if (contacts.includes(ctx.self) && !state.yields) return enter(state, ctx.self, ctx);
      state.yields = false;
      return;
    }
    state.contact = contacts[next] as NodeId;
    searches.take(state, { purpose: "join", finger: 0, place: ring.placeOf(ctx.self) }, ctx);
  }

  function enter(state: State, successor: NodeId, ctx: Ctx): void {
    state.membership = "member";
    state.contact = -1;
    state.successors = [successor];
    state.fingers = Array.from({ length: identifierBits }, () => null);
    round(state, ctx);
  }

  function round(state: State, ctx: Ctx): void {
    ctx.setTimer("round", roundMs);
    if (state.membership === "joining") {
      if (state.lookup === null) tryContact(state, ctx);
      return;
    }
    if (!neighbourhood.stabilize(state, ctx)) return join(state, ctx); // All successors have crashed.
    searches.take(state, { purpose: "superPeer", finger: 0, place: ring.placeOfKey(ring.reservedKey(ctx.self)) }, ctx);
    fixFinger(state, ctx);
  }

  /** Refreshes one finger per round. Fingers that reach no farther than the successor point to the successor. */
  function fixFinger(state: State, ctx: Ctx): void {
    const next = state.successors[0] as NodeId;
    for (let tries = 0; tries < identifierBits; tries++) {
      const finger = state.turn;
      state.turn = (state.turn + 1) % identifierBits;
      const place = ring.fingerPlace(ctx.self, finger);
      if (next !== ctx.self && !ring.isWithin(place, ring.placeOf(ctx.self), ring.placeOf(next)))
        return searches.take(state, { purpose: "finger", finger, place }, ctx);
      state.fingers[finger] = next;
    }
  }

  function succeed(state: State, { purpose, finger, place }: Task, owner: NodeId, hops: number, ctx: Ctx): void {
    switch (purpose) {
      case "join": // If the owner is this node, the others have not noticed yet that it crashed.
        return owner === ctx.self ? undefined : enter(state, owner, ctx);
      case "finger":
        state.fingers[finger] = owner;
        return;
      case "superPeer":
        if (owner === state.superPeer) return;
        state.superPeer = owner;
        return ctx.emit({ type: "elected", leader: owner });
      case "find":
        return ctx.emit({ type: "found", key: ring.keyAt(place), owner, hops });
    }
  }

  /** Returns the three lowest ids, including this node's. */
  function lowest(ctx: Ctx): NodeId[] {
    return [...ctx.peers.slice(0, FEW_CONTACTS), ctx.self].sort((a, b) => a - b).slice(0, FEW_CONTACTS);
  }

  return {
    name: "super-peer-dht",
    init,
    start: join, // A recovered node does not know which nodes have joined and left in the meantime.
    receive: {
      ask(state, from, { place, avoid }, ctx) {
        if (state.membership === "outside") return; // Behave as if this node did not exist.
        // The contact may have started after this node asked it without success.
        if (state.membership === "joining" && precedes(from, ctx)) state.yields = true;
        ctx.send(from, { type: "way", place, ...searches.way(state, ctx.self, place, avoid) });
      },
      way(state, from, { place, node, isOwner }, ctx) {
        if (namesStranger([node], ctx)) return;
        // If no other node has founded the ring, a contact that is itself joining and takes precedence over this node
        // founds it.
        if (state.lookup?.purpose === "join" && node === null && precedes(from, ctx)) state.yields = true;
        searches.follow(state, from, place, { node, isOwner }, ctx);
      },
      stabilize(state, from, _message, ctx) {
        // Nodes outside the ring do not answer, so that the sender forgets them.
        if (state.membership === "member") neighbourhood.hear(state, from, ctx);
      },
      neighbours(state, from, { predecessor, successors }, ctx) {
        if (state.membership === "member" && !namesStranger([predecessor, ...successors], ctx))
          neighbourhood.adopt(state, from, predecessor, successors, ctx);
      },
      check(state, from, _message, ctx) {
        if (state.membership === "member") ctx.send(from, { type: "present" });
      },
      present(state, from) {
        if (state.predecessor === from) state.silence = 0;
      },
      leaving(state, from, { predecessor, successors }, ctx) {
        if (state.membership === "member" && !namesStranger([predecessor, ...successors], ctx))
          neighbourhood.release(state, from, predecessor, successors, ctx);
      },
    },
    timeout: { round, answer: searches.evade },
    command: {
      call: (state, _command, ctx) => (state.membership === "outside" ? join(state, ctx) : round(state, ctx)),
      leave(state, _command, ctx) {
        if (state.membership === "member") neighbourhood.leave(state, ctx);
        ctx.cancelTimer("round");
        ctx.cancelTimer("answer");
        Object.assign(state, outside());
      },
      find(state, { key }, ctx) {
        if (state.membership !== "member") return; // This node does not know any node to ask.
        searches.take(state, { purpose: "find", finger: 0, place: ring.placeOfKey(key) }, ctx);
      },
    },
    shapes,
    ...declared,
    properties: superPeerProperties(ring),
    view: (state, self) => ({
      role: state.membership !== "member" ? state.membership : isSuperPeer(ring, state, self) ? "super-peer" : "node",
      leader: state.superPeer,
    }),
  };

  /** Whether `node` is a contact that takes precedence over this node in founding the ring. */
  function precedes(node: NodeId, ctx: Ctx): boolean {
    const contacts = options.contacts.length > 0 ? options.contacts : lowest(ctx);
    if (!contacts.includes(node)) return false;
    return !contacts.includes(ctx.self) || contacts.indexOf(node) < contacts.indexOf(ctx.self);
  }
}

const declared: Pick<Protocol<SuperPeerDht>, "source" | "assumes" | "costs"> = {
  source: "Lo, Zhou, Liu, GauthierDickey & Li, HOT-P2P 2005; Stoica et al., IEEE/ACM ToN 2003; Zave, IEEE TSE 2017",
  assumes: [
    "crash-recovery nodes",
    "bounded delay: answerMs exceeds a round trip",
    "reliable links",
    "a contact is a member whenever a node joins or has lost all its successors at once",
  ],
  costs: [{ when: "one stabilization round of all nodes", messages: (count) => 2 * count }],
};

/**
 * Whether the node is responsible for its own region's reserved identifier. A node that owns any other reserved
 * identifier always owns that one too.
 */
export const isSuperPeer = (ring: IdentifierRing, state: State, self: NodeId): boolean =>
  owns(ring, state, self, ring.placeOfKey(ring.reservedKey(self)));

type Nodes = World<State>;

const members = ({ alive, state }: Nodes): NodeId[] => alive.filter((node) => state(node).membership === "member");

function superPeerProperties(ring: IdentifierRing): readonly Property<SuperPeerDht>[] {
  return [
    {
      name: "ring",
      claim: "eventually no node is joining, and each member knows its predecessor and successor",
      when: "eventually",
      holds(world) {
        const there = members(world);
        if (world.alive.some((node) => world.state(node).membership === "joining")) return false;
        if (there.length === 0) return true;
        const ideal = convergedRing(ring, there);
        return there.every((node) => {
          const { predecessor, successors } = world.state(node);
          if (there.length === 1) return successors[0] === node;
          return predecessor === ideal.neighbour(node, -1) && successors[0] === ideal.neighbour(node, 1);
        });
      },
    },
    {
      name: "one super-peer for each region",
      claim: "eventually exactly one member considers itself responsible for each reserved identifier",
      when: "eventually",
      holds(world) {
        const there = members(world);
        if (there.length === 0) return true;
        return ring.reservedKeys().every((key) => {
          const place = ring.placeOfKey(key);
          return there.filter((node) => owns(ring, world.state(node), node, place)).length === 1;
        });
      },
    },
    {
      name: "agreement",
      claim: "eventually each member uses the super-peer of its region",
      when: "eventually",
      holds(world) {
        const there = members(world);
        if (there.length === 0) return true;
        const ideal = convergedRing(ring, there);
        return there.every(
          (node) => world.state(node).superPeer === ideal.ownerOf(ring.placeOfKey(ring.reservedKey(node))),
        );
      },
    },
    {
      name: "joining ends",
      claim: "a joining node eventually becomes a member",
      when: "leadsTo",
      given: ({ state }, node) => state(node).membership === "joining",
      holds: ({ state }, node) => state(node).membership === "member",
    },
  ];
}
