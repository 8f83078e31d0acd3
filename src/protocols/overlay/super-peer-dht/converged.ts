/** The ring as it should be among given members: to begin with, and to compare with. */
import type { NodeId } from "../../../core/protocol.ts";
import type { IdentifierRing } from "./identifiers.ts";

export interface ConvergedRing {
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
