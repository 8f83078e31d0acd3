/** Tokens repel each other: each with a force of 1 where they touch, that falls to 0 at `reach`. */
import type { NodeId } from "../../../core/protocol.ts";
import type { Space } from "./space.ts";
import type { Sighting } from "./vocabulary.ts";

/** The net force on a token at `self`, as a vector. */
export function netForce(space: Space, self: NodeId, others: readonly Sighting[], reach: number): number[] {
  const own = space.pointOf(self);
  const net = own.map(() => 0);
  for (const { holder } of others) {
    const away = space.way(space.pointOf(holder), own);
    const distance = length(away);
    if (distance >= reach) continue;
    const strength = 1 - distance / reach;
    // Two nodes at one point: the higher id goes one way, the lower the other.
    if (distance === 0) net[0] = (net[0] ?? 0) + (self > holder ? strength : -strength);
    else for (const [axis, x] of away.entries()) net[axis] = (net[axis] ?? 0) + (strength * x) / distance;
  }
  return net;
}

export const length = (vector: readonly number[]): number => Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
