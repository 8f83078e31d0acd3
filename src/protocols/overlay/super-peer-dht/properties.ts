/** What the ring and its super-peers come to in the end. */
import type { NodeId, Property, World } from "../../../core/protocol.ts";
import { convergedRing } from "./converged.ts";
import type { IdentifierRing } from "./identifiers.ts";
import { owns } from "./lookups.ts";
import type { State, SuperPeerDht } from "./vocabulary.ts";

/** Whether it is responsible for the reserved identifier of its own region; for any other it is only if it is for that too. */
export const isSuperPeer = (ring: IdentifierRing, state: State, self: NodeId): boolean =>
  owns(ring, state, self, ring.placeOfKey(ring.reservedKey(self)));

type Nodes = World<State>;

const members = ({ alive, state }: Nodes): NodeId[] => alive.filter((node) => state(node).membership === "member");

export function superPeerProperties(ring: IdentifierRing): readonly Property<SuperPeerDht>[] {
  return [
    {
      name: "ring",
      claim: "in the end nobody is still joining, and each member knows who stands before and after it",
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
      claim: "in the end exactly one member holds itself responsible for each reserved identifier",
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
      claim: "in the end each member uses the super-peer of its region",
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
      claim: "a node that joins is a member in the end",
      when: "leadsTo",
      given: ({ state }, node) => state(node).membership === "joining",
      holds: ({ state }, node) => state(node).membership === "member",
    },
  ];
}
