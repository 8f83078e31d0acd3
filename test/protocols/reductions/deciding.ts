/** The interface and the properties of consensus, for every reduction that implements it. */
import type { Property, Protocol, TimerOf, Vocabulary, World } from "../../../src/core/protocol.ts";
import { text } from "../../../src/core/shape.ts";

/** At most one value each; null: none yet. */
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

/** Without Byzantine nodes. */
export const validity = {
  name: "validity",
  claim: "what is decided was proposed",
  when: "always",
  holds: ({ nodes, alive, state }: World<Deciding>) =>
    alive.length < nodes.length || // A crashed node may have proposed the value.
    alive.every((node) => {
      const { decided } = state(node);
      return decided === null || alive.some((other) => state(other).proposed === decided);
    }),
} as const;

/** With Byzantine nodes, whose proposals are unknown. */
export const unanimity = {
  name: "validity",
  claim: "if all honest nodes propose the same, that is decided",
  when: "always",
  holds({ alive, state }: World<Deciding>) {
    const proposed = new Set(alive.map((node) => state(node).proposed));
    const [only] = proposed;
    return proposed.size !== 1 || only === null || alive.every((node) => (state(node).decided ?? only) === only);
  },
} as const;

/** The same property for nodes that are busy while one of these timers runs. The timers may belong to another part. */
export const atWorkWhile = <V extends Vocabulary>(
  pendingTimers: readonly TimerOf<V>[],
  protocol: Protocol<V>,
): Protocol<V> => ({
  ...protocol,
  properties: protocol.properties.map((each) => (each.when === "quiescent" ? { ...each, pendingTimers } : each)),
});

/** Metadata that only the reduction defines for a part. */
export const ofAReduction = {
  source: "Coulouris et al. §15.5",
  assumes: [],
  costs: [],
  view: () => ({ role: "reduction" }),
} as const;
