/** Evaluates the properties of a run as it happens: a simulated run or a recording that is being replayed. */
import type { LeadsTo, NodeId, Property, StateOf, TimerOf, Vocabulary, World } from "../core/protocol.ts";

/** Evaluates properties. The unit of `at` depends on the caller: virtual milliseconds, or the index of an entry. */
export class PropertyWatcher<V extends Vocabulary> {
  /** When each violated property was first violated. */
  readonly violations = new Map<Property<V>, number>();
  /**
   * The names of `sometimes` properties that have come true, and of `quiescent` properties that have been evaluated in
   * a quiescent state.
   */
  readonly seen = new Set<string>();
  readonly #world: World<StateOf<V>>;
  readonly #isQuiescent: (pendingTimers: readonly TimerOf<V>[]) => boolean;
  #unbroken: readonly Property<V>[];
  #unseen: readonly Property<V>[];
  /**
   * For each `leadsTo` property: the nodes at which `given` has held but `holds` has not held since, oldest first, with
   * the time when `given` held.
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

  /** Discards the open obligations of a crashed node. */
  forget(node: NodeId): void {
    for (const open of this.#promises.values()) open.delete(node);
  }

  /** Returns the node that has waited longest for a `leadsTo` property to be fulfilled, and when its wait began. */
  waiting(property: Property<V>): { readonly node: NodeId; readonly since: number } | null {
    const [first] = this.#promises.get(property) ?? [];
    return first === undefined ? null : { node: first[0], since: first[1] };
  }

  /** Whether a property of single states is currently violated. */
  isBroken(property: Property<V>): boolean {
    if (property.when === "leadsTo") return false;
    if (property.when === "quiescent") {
      if (!this.#isQuiescent(property.pendingTimers ?? [])) return false;
      this.seen.add(property.name);
    }
    return !property.holds(this.#world);
  }
}

/** The verdict on a recording. */
export type ReplayVerdict = "holds" | "violated" | "unknown";

/** The finding about one property in a recording. */
export interface ReplayFinding<V extends Vocabulary> {
  readonly property: Property<V>;
  readonly verdict: ReplayVerdict;
  /** The index of the entry that caused the violation or opened the obligation. Null if there is none. */
  readonly entry: number | null;
  /** The node whose obligation is open. Null if the obligation concerns all nodes. */
  readonly node: NodeId | null;
  /** Why the property is neither shown to hold nor violated. Otherwise empty. */
  readonly why: string;
}

/**
 * Returns the findings.
 * @param isBlindSince the first entry that is followed by an unknown state. Null if all states have always been known.
 */
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
    if (waiting !== null) return unknown("still open when the recording ends", waiting.since, waiting.node);
    if (when === "eventually" && watcher.isBroken(property)) return unknown("not fulfilled when the recording ends");
    return holds;
  };
  return watcher.properties.map((property) => ({ property, ...findingOf(property) }));
}

/**
 * Combines findings into a verdict. `sometimes` is a claim about all runs together, so a single run that does not show
 * it proves nothing.
 */
export function overall<V extends Vocabulary>(findings: readonly ReplayFinding<V>[]): ReplayVerdict {
  if (findings.some(({ verdict }) => verdict === "violated")) return "violated";
  return findings.every(({ verdict, property }) => verdict === "holds" || property.when === "sometimes")
    ? "holds"
    : "unknown";
}
