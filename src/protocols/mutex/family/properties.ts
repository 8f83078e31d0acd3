/** What every mutual exclusion should fulfil, in the words of Coulouris et al. §15.2. Ordering (ME3) differs: see each. */
import type { Property, StateOf, TimerOf, Vocabulary, World } from "../../../core/protocol.ts";

/** Outside and not interested; asking; inside. */
export type Section = "released" | "wanted" | "held";

/** ME1 and ME2 of an algorithm whose state says where its node stands, and which is at work while a timer of `pendingTimers` runs. */
export function mutexProperties<V extends Vocabulary>(
  sectionOf: (state: StateOf<V>) => Section,
  pendingTimers: readonly TimerOf<V>[] = [],
): readonly Property<V>[] {
  type Nodes = World<StateOf<V>>;
  const count = ({ alive, state }: Nodes, section: Section): number =>
    alive.filter((node) => sectionOf(state(node)) === section).length;
  return [
    {
      name: "ME1 safety",
      claim: "at most one node is inside",
      when: "always",
      holds: (world) => count(world, "held") <= 1,
    },
    {
      name: "ME2 liveness",
      claim: "at rest, nobody waits to enter unless somebody is inside",
      when: "quiescent",
      pendingTimers,
      holds: (world) => count(world, "wanted") === 0 || count(world, "held") > 0,
    },
    {
      name: "ME2 no starvation",
      claim: "a node that waits to enter is inside in the end",
      when: "leadsTo",
      given: ({ state }, node) => sectionOf(state(node)) === "wanted",
      holds: ({ state }, node) => sectionOf(state(node)) === "held",
    },
  ];
}
