/** Evaluates the properties of a run while it happens: a simulated run, or a recording that is replayed. */
import type { LeadsTo, NodeId, Property, StateOf, TimerOf, Vocabulary, World } from "../core/protocol.ts";

/** `at` is in the caller's units: virtual milliseconds, or the index of an entry. */
export class PropertyWatcher<V extends Vocabulary> {
  /** When each broken property was first violated. */
  readonly violations = new Map<Property<V>, number>();
  /**
   * Names of `sometimes` properties that have come true, and of `quiescent` properties that were evaluated in a quiescent
   * state.
   */
  readonly seen = new Set<string>();
  readonly #world: World<StateOf<V>>;
  readonly #isQuiescent: (pendingTimers: readonly TimerOf<V>[]) => boolean;
  #unbroken: readonly Property<V>[];
  #unseen: readonly Property<V>[];
  /**
   * For each `leadsTo` property, the nodes for which `given` has held but `holds` has not held since, oldest first, with the
   * time.
   */
  readonly #promises = new Map<Property<V>, Map<NodeId, number>>();

  constructor(
    readonly properties: readonly Property<V>[],
    world: World<StateOf<V>>,
    isQuiescent: (pendingTimers: readonly TimerOf<V>[]) => boolean,
  ) {
    this.#world = world;
    this.#isQuiescent = isQuiescent;
    this.#unbroken = properties.filter(({ when }) => when === "always" || when === "quiescent");
    this.#unseen = properties.filter(({ when }) => when === "sometimes");
    for (const property of properties) if (property.when === "leadsTo") this.#promises.set(property, new Map());
  }

  /** Evaluates all properties that may have changed. */
  look(at: number): void {
    for (const property of this.#unbroken) {
      if (!this.isBroken(property)) continue;
      this.violations.set(property, at);
      this.#unbroken = this.#unbroken.filter((other) => other !== property);
    }
    for (const property of this.#unseen) {
      if (property.when !== "sometimes" || !property.holds(this.#world)) continue;
      this.seen.add(property.name);
      this.#unseen = this.#unseen.filter((other) => other !== property);
    }
    for (const [property, open] of this.#promises) this.#follow(property as LeadsTo<V>, open, at);
  }

  #follow(property: LeadsTo<V>, open: Map<NodeId, number>, at: number): void {
    for (const node of this.#world.alive) {
      const isOpen = open.has(node);
      if (!isOpen && !property.given(this.#world, node)) continue;
      const holds = property.holds(this.#world, node);
      if (isOpen && holds) open.delete(node);
      if (!isOpen && !holds) open.set(node, at);
    }
  }

  /** A crashed node has no open obligations. */
  forget(node: NodeId): void {
    for (const open of this.#promises.values()) open.delete(node);
  }

  /** For a `leadsTo` property: the node that has waited longest, and since when. */
  waiting(property: Property<V>): { readonly node: NodeId; readonly since: number } | null {
    const [first] = this.#promises.get(property) ?? [];
    return first === undefined ? null : { node: first[0], since: first[1] };
  }

  /** Whether a property of single states does not hold now. */
  isBroken(property: Property<V>): boolean {
    if (property.when === "leadsTo") return false;
    if (property.when === "quiescent") {
      if (!this.#isQuiescent(property.pendingTimers ?? [])) return false;
      this.seen.add(property.name);
    }
    return !property.holds(this.#world);
  }
}

export type ReplayVerdict = "holds" | "violated" | "unknown";

/** The finding of a recording on one property. */
export interface ReplayFinding<V extends Vocabulary> {
  readonly property: Property<V>;
  readonly verdict: ReplayVerdict;
  /** The index of the first entry with a violation after it, or of the entry since when it is open. Null if there is none. */
  readonly entry: number | null;
  /** The node whose obligation is open. Null if it concerns all nodes. */
  readonly node: NodeId | null;
  /** Why it neither holds nor is violated. Empty otherwise. */
  readonly why: string;
}

/** @param isBlindSince the first entry with an unknown state after it. Null if all have always been known. */
export function findingsOf<V extends Vocabulary>(
  watcher: PropertyWatcher<V>,
  { hasLooked, isBlindSince }: { readonly hasLooked: boolean; readonly isBlindSince: number | null },
): ReplayFinding<V>[] {
  const unknown = (why: string, entry: number | null = null, node: NodeId | null = null) => {
    return { verdict: "unknown", why, entry, node } as const;
  };
  const findingOf = (property: Property<V>): Omit<ReplayFinding<V>, "property"> => {
    const { when, name } = property;
    const holds = { verdict: "holds", entry: null, node: null, why: "" } as const;
    const violatedAt = watcher.violations.get(property);
    if (violatedAt !== undefined) return { ...holds, verdict: "violated", entry: violatedAt };
    if (!hasLooked && isBlindSince === null) return unknown("nothing happens in this recording");
    if (when === "sometimes" && watcher.seen.has(name)) return holds;
    if (isBlindSince !== null) return unknown("not every state is known", isBlindSince);
    if (when === "sometimes") return unknown("it was not seen in this run");
    const waiting = watcher.waiting(property);
    if (waiting !== null) return unknown("still open where the recording ends", waiting.since, waiting.node);
    if (when === "eventually" && watcher.isBroken(property)) return unknown("not so where the recording ends");
    return holds;
  };
  return watcher.properties.map((property) => ({ property, ...findingOf(property) }));
}

/** `sometimes` is a claim about all runs together, so one run that does not show it proves nothing. */
export function overall<V extends Vocabulary>(findings: readonly ReplayFinding<V>[]): ReplayVerdict {
  if (findings.some(({ verdict }) => verdict === "violated")) return "violated";
  return findings.every(({ verdict, property }) => verdict === "holds" || property.when === "sometimes")
    ? "holds"
    : "unknown";
}
