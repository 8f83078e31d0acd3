/** The vocabulary of the ring's nodes (identifiers, state and messages), and functions on identifiers. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import { hash } from "../../../core/plain.ts";
import type { Context, NodeId } from "../../../core/protocol.ts";
import { boolean, list, natural, nullable } from "../../../core/shape.ts";
import { nodeIds, option, type ValuesOf, whole } from "../../options.ts";

// The ring of m-bit identifiers. The first k bits are reserved for super-peers.

/** The options that determine identifiers. */
export const identifierOptions = {
  identifierBits: whole(16, "m, the number of bits in an identifier, at most 24"),
  reservedBits: whole(2, "k, the number of leading bits that name a super-peer"),
  identifiers: option(
    nodeIds(1_000_000),
    [],
    "the identifiers, all different, indexed by node id; if empty, hashes of the node ids",
  ),
};

type IdentifierOptions = ValuesOf<typeof identifierOptions>;

/**
 * The ring of identifiers. A *place* is a point on the ring. If two nodes have the same identifier, their places are
 * adjacent, in the order of their ids, and the first of them owns the key. Each identifier is therefore stretched to as
 * many places as there may be nodes.
 */
export interface IdentifierRing {
  placeOf(node: NodeId): number;
  /** Returns a key's place, which precedes every node with that identifier. */
  placeOfKey(key: number): number;
  keyAt(place: number): number;
  /** Returns `key AND 1…10…0` for the node's own identifier. */
  reservedKey(node: NodeId): number;
  reservedKeys(): number[];
  /** Returns the place that a node's finger i points to, 2^i identifiers clockwise from the node. */
  fingerPlace(node: NodeId, finger: number): number;
  /** Returns the clockwise distance between two places. The distance from a place to itself is the whole circle. */
  distance(from: number, to: number): number;
  /** Whether a place lies clockwise from `after`, up to and including `upTo`. */
  isWithin(place: number, after: number, upTo: number): boolean;
}

const MAX_BITS = 24;
/** The maximum number of nodes with the same identifier. Places stay below 2⁵². */
const NODES_PER_IDENTIFIER = 2 ** 28;

/** Creates the ring of identifiers. @throws UsageError if the options are inconsistent */
export function identifierRing(options: IdentifierOptions): IdentifierRing {
  requireBits(options);
  const { identifierBits, reservedBits, identifiers } = options;
  const keys = 2 ** identifierBits;
  const region = 2 ** (identifierBits - reservedBits);
  const stretch = identifiers.length > 0 ? 1 : NODES_PER_IDENTIFIER;
  const circle = keys * stretch;
  const known = new Map<NodeId, number>();

  /** Returns a node's place. The place is cached, because a node's identifier never changes. */
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

// The ideal ring for the given members, used as an initial state and as a reference for comparisons.

interface ConvergedRing {
  /** The members, in clockwise order. */
  readonly members: readonly NodeId[];
  includes(node: NodeId): boolean;
  /** Returns the member `places` places clockwise from the node. */
  neighbour(node: NodeId, places: number): NodeId;
  /** Returns the first member at or after the place. */
  ownerOf(place: number): NodeId;
}

/** Creates the ideal ring. @param nodes at least one */
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

/** The purpose of a lookup. The first three purposes maintain the ring; `find` is requested from outside. */
type Purpose = "join" | "finger" | "superPeer" | "find";

/** The purpose of a lookup and the place to look up. */
export interface Task {
  purpose: Purpose;
  /** The index of the finger, or 0 for other purposes. */
  finger: number;
  /** The place on the ring to look up. */
  place: number;
}

/**
 * A lookup in progress. Lookups are iterative: this node asks each of the other nodes itself, so that it notices
 * missing answers.
 */
export interface Lookup extends Task {
  current: NodeId;
  /** The nodes that have already been asked. */
  trail: NodeId[];
  /** The nodes that did not answer. */
  avoid: NodeId[];
  hops: number;
}

/** Vocabulary of the super-peer election in a distributed hash table. */
export type SuperPeerDht = {
  state: {
    membership: "outside" | "joining" | "member";
    /** The contact that this node has asked to let it join. Negative if there is none. */
    contact: number;
    /**
     * Whether, in this pass through the contacts, the node has noticed a contact that takes precedence in founding the
     * ring.
     */
    yields: boolean;
    predecessor: NodeId | null;
    /** The number of rounds since the last message from the predecessor. */
    silence: number;
    /** The successors, in clockwise order. Contains only the node itself if it does not know any other node. */
    successors: NodeId[];
    /** The number of rounds without an answer from the first successor. */
    unanswered: number;
    /** Finger i is the node responsible for the identifier that is 2^i beyond this node's. */
    fingers: (NodeId | null)[];
    /** The index of the finger to refresh next. */
    turn: number;
    /** The node responsible for this node's identifier with all but the reserved bits cleared. */
    superPeer: NodeId | null;
    lookup: Lookup | null;
    /** Lookups that are waiting for the current one to end. */
    waiting: Task[];
  };
  message: /** Asks which node, other than those in `avoid`, is responsible for this place. */
    | { type: "ask"; place: number; avoid: NodeId[] }
    /**
     * Names the node that is responsible, or a closer node. Null if the sender is not a member or does not know a
     * closer node.
     */
    | { type: "way"; place: number; node: NodeId | null; isOwner: boolean }
    /** Asks for the receiver's neighbors. The sender considers the receiver its successor. */
    | { type: "stabilize" }
    | { type: "neighbours"; predecessor: NodeId | null; successors: NodeId[] }
    /**
     * Asks whether the receiver is alive, because the sender has not received anything from it recently and considers
     * it its predecessor.
     */
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

/** The maximum number of successors that a member knows. */
export const MAX_SUCCESSORS = 16;
/**
 * The maximum number of unresponsive nodes per lookup. If there are more, the lookup is abandoned until the next round.
 */
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
