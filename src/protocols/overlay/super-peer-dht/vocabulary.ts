/** What nodes of the ring know, and what they say to each other. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import { hash } from "../../../core/plain.ts";
import type { Context, NodeId } from "../../../core/protocol.ts";
import { boolean, list, natural, nullable } from "../../../core/shape.ts";
import { nodeIds, option, type ValuesOf, whole } from "../../options.ts";

// The ring of m-bit identifiers, the first k bits of which are reserved for super-peers.

export const identifierOptions = {
  identifierBits: whole(16, "m, the bits of an identifier, at most 24"),
  reservedBits: whole(2, "k, how many of them, the leftmost, name a super-peer"),
  identifiers: option(nodeIds(1_000_000), [], "the identifiers by node id, each once; empty: hashes of node ids"),
};

type IdentifierOptions = ValuesOf<typeof identifierOptions>;

/**
 * A *place* is a point of the ring. Two nodes may have the same identifier: they stand side by side, in the order of
 * their ids, and the first of them owns the key. So an identifier is stretched to as many places as there may be nodes.
 */
export interface IdentifierRing {
  placeOf(node: NodeId): number;
  /** Where a key stands: before every node that has it as its identifier. */
  placeOfKey(key: number): number;
  keyAt(place: number): number;
  /** `key AND 1…10…0` of the node's own identifier. */
  reservedKey(node: NodeId): number;
  reservedKeys(): number[];
  /** Where finger i of a node points to: 2^i identifiers clockwise of it. */
  fingerPlace(node: NodeId, finger: number): number;
  /** How far it is clockwise; the whole circle from a place to itself. */
  distance(from: number, to: number): number;
  /** Whether a place lies clockwise of `after` and not beyond `upTo`. */
  isWithin(place: number, after: number, upTo: number): boolean;
}

const MAX_BITS = 24;
/** So many node ids share an identifier at most: a place is then below 2⁵². */
const NODES_PER_IDENTIFIER = 2 ** 28;

export function identifierRing(options: IdentifierOptions): IdentifierRing {
  requireBits(options);
  const { identifierBits, reservedBits, identifiers } = options;
  const keys = 2 ** identifierBits;
  const region = 2 ** (identifierBits - reservedBits);
  const stretch = identifiers.length > 0 ? 1 : NODES_PER_IDENTIFIER;
  const circle = keys * stretch;
  const known = new Map<NodeId, number>();

  /** The identifier of a node never changes, so it is looked up from the second time on. */
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
      unexpected("super-peer-dht.identifiers", `one for node ${node} too`, identifiers),
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

/** What a lookup is for. The first three upkeep the ring; `find` was asked for from outside. */
type Purpose = "join" | "finger" | "superPeer" | "find";

export interface Task {
  purpose: Purpose;
  /** Which finger; 0 for other purposes. */
  finger: number;
  /** The place on the ring that is looked up. */
  place: number;
}

/** A lookup under way: the node asks one after the other itself, so that it notices who does not answer. */
export interface Lookup extends Task {
  current: NodeId;
  /** Who was asked before. */
  trail: NodeId[];
  /** Who did not answer. */
  avoid: NodeId[];
  hops: number;
}

export type SuperPeerDht = {
  state: {
    membership: "outside" | "joining" | "member";
    /** The place, among the contacts, of the one that this node asked for a way in. */
    contact: number;
    /** Whether a contact that would found the ring first has been heard of, in this turn through the contacts. */
    yields: boolean;
    predecessor: NodeId | null;
    /** Rounds since it was heard of. */
    silence: number;
    /** Clockwise, the next first; oneself where nobody else is known. */
    successors: NodeId[];
    /** Rounds in which the next one has not answered. */
    unanswered: number;
    /** Finger i: who is responsible for the identifier 2^i beyond one's own. */
    fingers: (NodeId | null)[];
    /** The finger that is refreshed next. */
    turn: number;
    /** Who is responsible for one's own identifier with all but the reserved bits cleared. */
    superPeer: NodeId | null;
    lookup: Lookup | null;
    /** Lookups that wait for the one under way. */
    waiting: Task[];
  };
  message: /** Who is responsible for this place? Not one of `avoid`. */
    | { type: "ask"; place: number; avoid: NodeId[] }
    /** That one is, or knows more. Null: I am no member, or know nobody nearer. */
    | { type: "way"; place: number; node: NodeId | null; isOwner: boolean }
    /** I take you for my successor: who are your neighbours? */
    | { type: "stabilize" }
    | { type: "neighbours"; predecessor: NodeId | null; successors: NodeId[] }
    /** I have not heard of you, and take you for my predecessor: are you there? */
    | { type: "check" }
    | { type: "present" }
    | { type: "leaving"; predecessor: NodeId | null; successors: NodeId[] };
  timer: "round" | "answer";
  command: /** Joins the ring, or, as a member, begins a round now. */
    | { type: "call" }
    | { type: "leave" }
    /** Looks up who is responsible for an identifier. */
    | { type: "find"; key: number };
  event: /** The node's super-peer is another one than before. */
  { type: "elected"; leader: NodeId } | { type: "found"; key: number; owner: NodeId; hops: number };
};

export type State = SuperPeerDht["state"];
export type Ctx = Context<SuperPeerDht>;

export const MAX_SUCCESSORS = 16;
/** So many silent nodes on one lookup, and it is given up until the next round. */
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
