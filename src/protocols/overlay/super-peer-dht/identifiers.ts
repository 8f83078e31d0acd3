/** The ring of m-bit identifiers, the first k bits of which are reserved for super-peers. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import { hash } from "../../../core/plain.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { nodeIds, option, type ValuesOf, whole } from "../../options.ts";

export const identifierOptions = {
  identifierBits: whole(16, "m, the bits of an identifier, at most 24"),
  reservedBits: whole(2, "k, how many of them, the leftmost, name a super-peer"),
  identifiers: option(nodeIds(1_000_000), [], "the identifiers by node id, each once; empty: hashes of node ids"),
};

export type IdentifierOptions = ValuesOf<typeof identifierOptions>;

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
