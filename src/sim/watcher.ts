/** Watches the properties of a run. */
import type { NodeId, Property, StateOf, TimerOf, Vocabulary, World } from "../core/protocol.ts";

export interface Violation {
  readonly property: string;
  readonly claim: string;
  /** When it was seen, in virtual milliseconds. */
  readonly at: number;
  /** Of a `leadsTo`: the node that has waited longest, and since when. */
  readonly waiting?: { readonly node: NodeId; readonly since: number };
}

export interface Watcher {
  /** The first violation of each property so far. */
  readonly violations: readonly Violation[];
  /** Names of the `sometimes` that have been so, and of the `quiescent` that were looked at, as there was a rest. */
  readonly seen: ReadonlySet<string>;
  /** Looks at everything that may have changed. */
  look(now: number): void;
  /** A node that crashes owes nothing any more. */
  forget(node: NodeId): void;
  verdict(now: number): readonly Violation[];
}

export function watcher<V extends Vocabulary>(
  properties: readonly Property<V>[],
  world: World<StateOf<V>>,
  isQuiescent: (pendingTimers: readonly TimerOf<V>[]) => boolean,
): Watcher {
  const violations: Violation[] = [];
  const seen = new Set<string>();
  const promises = properties.filter((property) => property.when === "leadsTo").map(promise);
  let unbroken = properties.filter(({ when }) => when === "always" || when === "quiescent");
  let unseen = properties.filter((property) => property.when === "sometimes");

  /** One `leadsTo`: the nodes that `given` has held of and `holds` has not since, in that order, each with the time. */
  function promise(property: Extract<Property<V>, { when: "leadsTo" }>) {
    const since = new Map<NodeId, number>();
    return {
      property,
      since,
      look(now: number): void {
        for (const node of world.alive) {
          const isOpen = since.has(node);
          if (!isOpen && !property.given(world, node)) continue;
          const holds = property.holds(world, node);
          if (isOpen && holds) since.delete(node);
          if (!isOpen && !holds) since.set(node, now);
        }
      },
    };
  }

  function isBroken(property: Property<V>): boolean {
    if (property.when === "leadsTo") return false;
    if (property.when === "quiescent") {
      if (!isQuiescent(property.pendingTimers ?? [])) return false;
      seen.add(property.name);
    }
    return !property.holds(world);
  }

  function look(now: number): void {
    for (const property of unbroken) {
      if (!isBroken(property)) continue;
      violations.push({ property: property.name, claim: property.claim, at: now });
      unbroken = unbroken.filter((other) => other !== property);
    }
    for (const property of unseen) {
      if (property.when !== "sometimes" || !property.holds(world)) continue;
      seen.add(property.name);
      unseen = unseen.filter((other) => other !== property);
    }
    for (const each of promises) each.look(now);
  }

  return {
    violations,
    seen,
    look,
    forget(node) {
      for (const { since } of promises) since.delete(node);
    },
    verdict(now) {
      look(now);
      const unmet = properties.filter((property) => property.when === "eventually" && isBroken(property));
      const waiting = promises.flatMap(({ property: { name, claim }, since }) => {
        const [first] = since;
        return first === undefined ? [] : [{ property: name, claim, waiting: { node: first[0], since: first[1] } }];
      });
      return [
        ...violations,
        ...[...unmet.map(({ name, claim }) => ({ property: name, claim })), ...waiting].map((each) => ({
          ...each,
          at: now,
        })),
      ];
    },
  };
}
