/** The order in which nodes stand on a ring: as an option names it, or ascending by id. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { nodeIds, option } from "../../options.ts";

export const ringOption = option(nodeIds(1_000_000), [], "every node once, clockwise; empty: ascending by id");

/** The neighbour at so many steps clockwise, of 1 to as many as there are peers. */
export type Neighbour = (self: NodeId, peers: readonly NodeId[], steps: number) => NodeId;

/** @throws UsageError, by what it returns, for a ring that does not have every node once. */
export function ringOrder(option: string, ring: readonly NodeId[]): Neighbour {
  const places = new Map(ring.map((node, place) => [node, place]));
  return (self, peers, steps) => {
    if (peers.length === 0) return self;
    if (ring.length === 0) {
      const above = peers.findIndex((peer) => peer > self);
      return peers[(Math.max(above, 0) + steps - 1) % peers.length] as NodeId;
    }
    const place = places.get(self);
    if (place === undefined || places.size !== peers.length + 1 || places.size !== ring.length)
      throw new UsageError("bad-option", unexpected(option, "every node once", ring));
    return ring[(place + steps) % ring.length] as NodeId;
  };
}
