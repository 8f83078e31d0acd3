/** What is known of tokens elsewhere: the nearest few, as fresh as gossip makes them. */
import type { NodeId } from "../../../core/protocol.ts";
import type { Point, Space } from "./space.ts";
import { isLater, MAX_KNOWN, type Sighting, type State } from "./vocabulary.ts";

/** What a node tells: its own token, and those that it knows of. */
export function told(state: State, self: NodeId, isSettled: boolean): Sighting[] {
  const { token, known } = state;
  return token === null ? known : [{ ...token, holder: self, age: 0, isSettled }, ...known];
}

/** Takes up what is newer or nearer than what the node knows. Sightings are never changed, since messages share them. */
export function learn(space: Space, state: State, self: NodeId, sightings: readonly Sighting[]): void {
  const known = [...state.known];
  let isMoved = false;
  for (const sighting of sightings) {
    if (sighting.holder === self) continue; // The node itself knows better.
    const at = indexOf(known, sighting.id);
    const before = known[at];
    if (before !== undefined && !isFresher(sighting, before)) continue;
    isMoved ||= before?.holder !== sighting.holder;
    known[before === undefined ? known.length : at] = sighting;
  }
  // News of tokens that have not moved leave the order as it was.
  state.known = isMoved ? nearest(space, space.pointOf(self), known) : known;
}

/** A loop, since this is what a large simulation does most. */
function indexOf(known: readonly Sighting[], id: number): number {
  for (let i = 0; i < known.length; i++) if (known[i]?.id === id) return i;
  return -1;
}

function isFresher(a: Sighting, b: Sighting): boolean {
  const isSame = a.epoch === b.epoch && a.moves === b.moves && a.holder === b.holder;
  return isSame ? a.age < b.age : isLater(a, b);
}

function nearest(space: Space, own: Point, sightings: readonly Sighting[]): Sighting[] {
  return sightings
    .map((sighting) => ({ sighting, distance: space.distance(own, space.pointOf(sighting.holder)) }))
    .sort((a, b) => a.distance - b.distance || a.sighting.id - b.sighting.id)
    .slice(0, MAX_KNOWN)
    .map(({ sighting }) => sighting);
}

/** A round has passed. What nobody has confirmed for so long is forgotten. */
export function age(state: State, mostRounds: number): void {
  state.known = state.known
    .filter((sighting) => sighting.age < mostRounds)
    .map((sighting) => ({ ...sighting, age: sighting.age + 1 }));
}
