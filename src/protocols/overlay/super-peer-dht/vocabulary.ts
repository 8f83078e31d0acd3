/** The vocabulary of the ring's nodes: identifiers, state and messages. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import { hash } from "../../../core/plain.ts";
import type { Context, NodeId } from "../../../core/protocol.ts";
import { boolean, list, natural, nullable } from "../../../core/shape.ts";
import { nodeIds, option, type ValuesOf, whole } from "../../options.ts";

// The ring of m-bit identifiers. Their first k bits are reserved for super-peers.

export const identifierOptions = {
  identifierBits: whole(16, "m, the bits of an identifier, at most 24"),
  reservedBits: whole(2, "k, the number of leading bits that name a super-peer"),
  identifiers: option(
    nodeIds(1_000_000),
    [],
    "the identifiers, indexed by node id, all different; empty: hashes of node ids",
  ),
};

type IdentifierOptions = ValuesOf<typeof identifierOptions>;

/**
 * A *place* is a point on the ring. Two nodes may have the same identifier: their places are adjacent, in the order of
 * their ids, and the first of them owns the key. So each identifier is stretched to as many places as there may be nodes.
 */
export interface IdentifierRing {
  placeOf(node: NodeId): number;
  /** The place of a key: before every node that has it as its identifier. */
  placeOfKey(key: number): number;
  keyAt(place: number): number;
  /** `key AND 1…10…0` of the node's own identifier. */
  reservedKey(node: NodeId): number;
  reservedKeys(): number[];
  /** The target of finger i of a node: 2^i identifiers clockwise of it. */
  fingerPlace(node: NodeId, finger: number): number;
  /** The clockwise distance. The whole circle from a place to itself. */
  distance(from: number, to: number): number;
  /** Whether a place lies clockwise of `after` and not beyond `upTo`. */
  isWithin(place: number, after: number, upTo: number): boolean;
}

const MAX_BITS = 24;
/** The maximum number of nodes with the same identifier. Places stay below 2⁵². */
const NODES_PER_IDENTIFIER = 2 ** 28;

export function identifierRing(options: IdentifierOptions): IdentifierRing {
  requireBits(options);
  const { identifierBits, reservedBits, identifiers } = options;
  const keys = 2 ** identifierBits;
  const region = 2 ** (identifierBits - reservedBits);
  const stretch = identifiers.length > 0 ? 1 : NODES_PER_IDENTIFIER;
  const circle = keys * stretch;
  const known = new Map<NodeId, number>();

  /** A node's identifier never changes, so it is cached. */
  function placeOf(node: NodeId): number {
    let place = known.get(node);
    if (place === undefined) {
      place = identifiers.length > 0 ? given(node) : (hash(node) % keys) * stretch + node;
      known.set(node, place);
    }
    return place;
  }

  function given(node: NodeId): number {
    const identifier = identifiers[node];
    if (identifier !== undefined) return identifier;
    throw new UsageError(
      "bad-option",
      unexpected("super-peer-dht.identifiers", `an entry for node ${node} as well`, identifiers),
    );
  }

  const distance = (from: number, to: number): number => {
    const way = to - from;
    return way > 0 ? way : way + circle;
  };

  return {
    placeOf,
    placeOfKey: (key) => (key % keys) * stretch,
    keyAt: (place) => Math.floor(place / stretch),
    reservedKey: (node) => Math.floor(Math.floor(placeOf(node) / stretch) / region) * region,
    reservedKeys: () => Array.from({ length: 2 ** reservedBits }, (_, i) => i * region),
    fingerPlace: (node, finger) => ((Math.floor(placeOf(node) / stretch) + 2 ** finger) % keys) * stretch,
    distance,
    isWithin: (place, after, upTo) => distance(after, place) <= distance(after, upTo),
  };
}

function requireBits({ identifierBits, reservedBits, identifiers }: IdentifierOptions): void {
  const refuse = (option: string, expected: string, got: unknown): never => {
    throw new UsageError("bad-option", unexpected(`super-peer-dht.${option}`, expected, got));
  };
  if (identifierBits < 1 || identifierBits > MAX_BITS) refuse("identifierBits", `1 to ${MAX_BITS}`, identifierBits);
  if (reservedBits > identifierBits)
    refuse("reservedBits", `at most ${identifierBits}, as identifierBits`, reservedBits);
  const stray = identifiers.find((each) => each >= 2 ** identifierBits);
  if (stray !== undefined) refuse("identifiers", `below 2^${identifierBits}`, stray);
  if (new Set(identifiers).size < identifiers.length) refuse("identifiers", "different from each other", identifiers);
}

// The ideal ring of given members: the initial state, and the reference for comparisons.

interface ConvergedRing {
  /** Clockwise. */
  readonly members: readonly NodeId[];
  includes(node: NodeId): boolean;
  /** The member `places` places clockwise of the node. */
  neighbour(node: NodeId, places: number): NodeId;
  /** The first member at or after a place. */
  ownerOf(place: number): NodeId;
}

/** @param nodes at least one */
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

/** The purpose of a lookup. The first three maintain the ring; `find` is requested from outside. */
type Purpose = "join" | "finger" | "superPeer" | "find";

export interface Task {
  purpose: Purpose;
  /** The index of the finger; 0 for other purposes. */
  finger: number;
  /** The place on the ring to look up. */
  place: number;
}

/** A lookup in progress. The node asks each node itself, so that it notices missing answers. */
export interface Lookup extends Task {
  current: NodeId;
  /** The nodes asked before. */
  trail: NodeId[];
  /** The nodes that did not answer. */
  avoid: NodeId[];
  hops: number;
}

/** Vocabulary of the super-peer election in a distributed hash table. */
export type SuperPeerDht = {
  state: {
    membership: "outside" | "joining" | "member";
    /** The contact that this node has asked for a way in. Negative if none. */
    contact: number;
    /** Whether a contact with precedence in founding the ring has been noticed in this pass through the contacts. */
    yields: boolean;
    predecessor: NodeId | null;
    /** Rounds since its last message. */
    silence: number;
    /** Clockwise, the next one first. The node itself if it knows no other. */
    successors: NodeId[];
    /** Rounds without an answer of the next one. */
    unanswered: number;
    /** Finger i: the node responsible for the identifier 2^i beyond this node's. */
    fingers: (NodeId | null)[];
    /** The finger to refresh next. */
    turn: number;
    /** The node responsible for this node's identifier with all but the reserved bits cleared. */
    superPeer: NodeId | null;
    lookup: Lookup | null;
    /** Lookups that wait for the current one. */
    waiting: Task[];
  };
  message: /** Asks which node is responsible for this place, excluding `avoid`. */
    | { type: "ask"; place: number; avoid: NodeId[] }
    /** `node` is responsible, or closer. Null: the sender is not a member, or knows no closer node. */
    | { type: "way"; place: number; node: NodeId | null; isOwner: boolean }
    /** The sender considers the receiver its successor and asks for its neighbors. */
    | { type: "stabilize" }
    | { type: "neighbours"; predecessor: NodeId | null; successors: NodeId[] }
    /** The sender has received nothing from the receiver, its predecessor, and asks whether it is alive. */
    | { type: "check" }
    | { type: "present" }
    | { type: "leaving"; predecessor: NodeId | null; successors: NodeId[] };
  timer: "round" | "answer";
  command: /** Joins the ring, or starts a round if it is a member. */
    | { type: "call" }
    | { type: "leave" }
    /** Looks up the node that is responsible for an identifier. */
    | { type: "find"; key: number };
  event: /** The node's super-peer has changed. */
  { type: "elected"; leader: NodeId } | { type: "found"; key: number; owner: NodeId; hops: number };
};

export type State = SuperPeerDht["state"];
export type Ctx = Context<SuperPeerDht>;

export const MAX_SUCCESSORS = 16;
/** After this many silent nodes, a lookup is abandoned until the next round. */
export const MAX_AVOIDED = 8;

export const shapes = {
  message: {
    ask: { place: natural, avoid: list(natural, MAX_AVOIDED) },
    way: { place: natural, node: nullable(natural), isOwner: boolean },
    stabilize: {},
    neighbours: { predecessor: nullable(natural), successors: list(natural, MAX_SUCCESSORS) },
    check: {},
    present: {},
    leaving: { predecessor: nullable(natural), successors: list(natural, MAX_SUCCESSORS) },
  },
  command: { call: {}, leave: {}, find: { key: natural } },
} as const;
