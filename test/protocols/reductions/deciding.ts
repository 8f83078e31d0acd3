/** What consensus is, whatever it is made of: what a reduction offers, and what it is held to. */
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
      claim: "in the end, every node has decided, if any has proposed",
      when: "quiescent",
      holds: ({ alive, state }: World<Deciding>) =>
        alive.every((node) => state(node).proposed === null) || alive.every((node) => state(node).decided !== null),
    },
  ] as Property<V>[];
}

/** Where nobody lies. */
export const validity = {
  name: "validity",
  claim: "what is decided was proposed",
  when: "always",
  holds: ({ nodes, alive, state }: World<Deciding>) =>
    alive.length < nodes.length || // Who had proposed it may be down.
    alive.every((node) => {
      const { decided } = state(node);
      return decided === null || alive.some((other) => state(other).proposed === decided);
    }),
} as const;

/** Where some lie: what they had proposed nobody can say. */
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

/** The same, whose nodes are at work while one of these timers runs: they may be those of another part. */
export const atWorkWhile = <V extends Vocabulary>(
  pendingTimers: readonly TimerOf<V>[],
  protocol: Protocol<V>,
): Protocol<V> => ({
  ...protocol,
  properties: protocol.properties.map((each) => (each.when === "quiescent" ? { ...each, pendingTimers } : each)),
});

/** What a part says of itself that is known by its reduction alone. */
export const ofAReduction = {
  source: "Coulouris et al. §15.5",
  assumes: [],
  costs: [],
  view: () => ({ role: "reduction" }),
} as const;
