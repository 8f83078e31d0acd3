/** The interface and the properties of consensus, for every reduction that implements it. */
import type { Property, Protocol, TimerOf, Vocabulary, World } from "../../../src/core/protocol.ts";
import { text } from "../../../src/core/shape.ts";

/** At most one value each. Null if there is none yet. */
export type Deciding = { proposed: string | null; decided: string | null };

export const undecided = (): Deciding => ({ proposed: null, decided: null });

export const value = text(1_000);
export const MAX_NODES = 100;

export function consensusProperties<V extends Vocabulary & { state: Deciding }>(): Property<V>[] {
  return [
    {
      name: "agreement",
      claim: "no two nodes decide differently",
      when: "always",
      holds: ({ alive, state }: World<Deciding>) =>
        new Set(alive.flatMap((node) => state(node).decided ?? [])).size <= 1,
    },
    {
      name: "termination",
      claim: "eventually, every node has decided, if any has proposed",
      when: "quiescent",
      holds: ({ alive, state }: World<Deciding>) =>
        alive.every((node) => state(node).proposed === null) || alive.every((node) => state(node).decided !== null),
    },
  ] as Property<V>[];
}

/** For runs without Byzantine nodes. */
export const validity = {
  name: "validity",
  claim: "every decided value was proposed",
  when: "always",
  holds: ({ nodes, alive, state }: World<Deciding>) =>
    alive.length < nodes.length || // A crashed node may have proposed the value.
    alive.every((node) => {
      const { decided } = state(node);
      return decided === null || alive.some((other) => state(other).proposed === decided);
    }),
} as const;

/** For runs with Byzantine nodes, whose proposals are unknown. */
export const unanimity = {
  name: "validity",
  claim: "if all honest nodes propose the same value, it is decided",
  when: "always",
  holds({ alive, state }: World<Deciding>) {
    const proposed = new Set(alive.map((node) => state(node).proposed));
    const [only] = proposed;
    return proposed.size !== 1 || only === null || alive.every((node) => (state(node).decided ?? only) === only);
  },
} as const;

/**
 * Returns the property, with nodes counted as busy while one of these timers runs. The timers may belong to a different
 * part.
 */
export const atWorkWhile = <V extends Vocabulary>(
  pendingTimers: readonly TimerOf<V>[],
  protocol: Protocol<V>,
): Protocol<V> => ({
  ...protocol,
  properties: protocol.properties.map((each) => (each.when === "quiescent" ? { ...each, pendingTimers } : each)),
});

/** Metadata of a part that only the reduction defines. */
export const ofAReduction = {
  source: "Coulouris et al. §15.5",
  assumes: [],
  costs: [],
  view: () => ({ role: "reduction" }),
} as const;
