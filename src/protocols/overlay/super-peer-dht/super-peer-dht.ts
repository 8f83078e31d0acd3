/**
 * Super-peers in a distributed hash table: the k leftmost bits of an identifier name a super-peer, and the node that is
 * responsible for `p AND 1…10…0` serves all nodes p of that region.
 * Lo, Zhou, Liu, GauthierDickey & Li, "Scalable Supernode Selection in Peer-to-Peer Overlay Networks", HOT-P2P 2005;
 * words of Tanenbaum & van Steen §6.5.3. The table is Chord: Stoica et al., "Chord: A Scalable Peer-to-Peer Lookup
 * Protocol for Internet Applications", IEEE/ACM ToN 2003, with the repairs of Zave, IEEE TSE 2017.
 *
 * Assumes   crash-recovery nodes; bounded delay (answerMs exceeds a round trip, roundMs exceeds answerMs); reliable
 *           links; a contact is a member whenever somebody joins, or has lost all its `successors` at once.
 * Safety    in the end each reserved identifier has exactly one super-peer. While members come and go there may be none or two.
 * Liveness  a node that joins becomes a member; in the end each member uses the super-peer of its region.
 * Cost      a lookup takes ½·log2 N hops in the mean, two messages each. A round takes 2 messages of each member to
 *           stabilize, 2 to ask its super-peer, and one lookup for a finger.
 *           2^(k−m)·N nodes, in the mean, have a reserved identifier as their own; but 2^k·(1 − (1 − 2^−k)^N) are responsible
 *           for one, which is 2^k where N is far above it: the two are equal only where every identifier has its node.
 */
import type { NodeId, Protocol } from "../../../core/protocol.ts";
import { count, nodeIds, type OptionsOf, option, optionTable } from "../../options.ts";
import { lookups, upkeep } from "./lookups.ts";
import {
  type Ctx,
  type IdentifierRing,
  identifierOptions,
  identifierRing,
  isSuperPeer,
  MAX_SUCCESSORS,
  type State,
  type SuperPeerDht,
  shapes,
  superPeerProperties,
  type Task,
} from "./vocabulary.ts";

// The ring as it should be among given members: to begin with, and to compare with.

interface ConvergedRing {
  /** Clockwise. */
  readonly members: readonly NodeId[];
  includes(node: NodeId): boolean;
  /** The member that stands so many places clockwise of it. */
  neighbour(node: NodeId, places: number): NodeId;
  /** The first member at or after a place. */
  ownerOf(place: number): NodeId;
}

/** `nodes`: at least one. */
export function convergedRing({ placeOf }: IdentifierRing, nodes: readonly NodeId[]): ConvergedRing {
  const members = nodes.toSorted((a, b) => placeOf(a) - placeOf(b));
  const indices = new Map(members.map((node, index) => [node, index]));
  const at = (index: number): NodeId => members[((index % members.length) + members.length) % members.length] as NodeId;

  function ownerOf(place: number): NodeId {
    let [low, high] = [0, members.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (placeOf(members[middle] as NodeId) < place) low = middle + 1;
      else high = middle;
    }
    return at(low);
  }

  return {
    members,
    includes: (node) => indices.has(node),
    neighbour: (node, places) => at((indices.get(node) ?? 0) + places),
    ownerOf,
  };
}

export type { SuperPeerDht } from "./vocabulary.ts";

const nodes = nodeIds(1_000_000);

export const dhtOptions = optionTable("super-peer-dht", {
  ...identifierOptions,
  successors: count(4, "r, how many successors a member knows", { max: MAX_SUCCESSORS }),
  roundMs: count(500, "the time between two rounds"),
  answerMs: count(200, "how long an answer to a question of a lookup may take"),
  contacts: option(
    nodes,
    [],
    "the nodes through which others join; the first alive of them founds the ring; empty: the three lowest ids",
  ),
  members: option(nodes, [], "the members of a converged ring at first, unless nodes start; empty: none"),
});

export type SuperPeerDhtOptions = OptionsOf<typeof dhtOptions>;

const FEW_CONTACTS = 3;

/** A liar speaks of a node that does not exist: who believed it would write to nobody. */
const namesStranger = (nodes: readonly (NodeId | null)[], { self, peers }: Ctx): boolean =>
  nodes.some((node) => node !== null && node !== self && !peers.includes(node));

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

  /** One contact a round. Once all have been asked in vain, the first of those that are alive founds the ring. */
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

  /** One a round. Those that do not reach beyond the successor are the successor. */
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
      case "join": // Oneself: the others have not noticed yet that this node had crashed.
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

  /** The three lowest ids, oneself among them. */
  function lowest(ctx: Ctx): NodeId[] {
    return [...ctx.peers.slice(0, FEW_CONTACTS), ctx.self].sort((a, b) => a - b).slice(0, FEW_CONTACTS);
  }

  return {
    name: "super-peer-dht",
    init,
    start: join, // A node that comes back knows nothing of who has come and gone.
    receive: {
      ask(state, from, { place, avoid }, ctx) {
        if (state.membership === "outside") return; // As if it did not exist.
        // It may have started after this node had asked it in vain.
        if (state.membership === "joining" && precedes(from, ctx)) state.yields = true;
        ctx.send(from, { type: "way", place, ...searches.way(state, ctx.self, place, avoid) });
      },
      way(state, from, { place, node, isOwner }, ctx) {
        if (namesStranger([node], ctx)) return;
        // Who joins itself, and stands before this node among the contacts, founds the ring if nobody has.
        if (state.lookup?.purpose === "join" && node === null && precedes(from, ctx)) state.yields = true;
        searches.follow(state, from, place, { node, isOwner }, ctx);
      },
      stabilize(state, from, _message, ctx) {
        if (state.membership === "member") neighbourhood.hear(state, from, ctx); // Others let it be forgotten.
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
        if (state.membership !== "member") return; // It knows nobody to ask.
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

  /** Whether that node is a contact, and founds the ring rather than this one. */
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
    "a contact is a member whenever somebody joins, or has lost all successors at once",
  ],
  costs: [{ when: "one round of all to stabilize", messages: (count) => 2 * count }],
};
