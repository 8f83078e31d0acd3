/** What a recording says about a protocol's properties. */
import type {
  LeadsTo,
  NodeId,
  Property,
  StateOf,
  StateProperty,
  TimerOf,
  Vocabulary,
  World,
} from "../core/protocol.ts";

export type ReplayVerdict = "holds" | "violated" | "unknown";

export interface ReplayFinding<V extends Vocabulary> {
  readonly property: Property<V>;
  readonly verdict: ReplayVerdict;
  /** Index of the entry after which it was violated first, or since which it is open; null where there is none. */
  readonly entry: number | null;
  /** The node whose case is open; null where it concerns them all. */
  readonly node: NodeId | null;
  /** Why it is neither violated nor holds; empty otherwise. */
  readonly why: string;
}

/** How things stand after a step. */
export interface Standing<V extends Vocabulary> {
  readonly world: World<StateOf<V>>;
  readonly nothingInFlight: boolean;
  isAlive(node: NodeId): boolean;
  isArmed(timer: TimerOf<V>): boolean;
}

interface Case<V extends Vocabulary> {
  readonly property: Property<V>;
  violatedAt: number | null;
  seen: boolean;
  /** For `leadsTo`: since when each node has been on its way. */
  readonly open: Map<NodeId, number>;
}

export class Findings<V extends Vocabulary> {
  readonly #cases: readonly Case<V>[];
  /** Since when some state is not known; null if it always was. */
  #blindSince: number | null = null;
  /** What nobody has looked at does not hold. */
  #hasLooked = false;

  constructor(properties: readonly Property<V>[]) {
    this.#cases = properties.map((property) => ({ property, violatedAt: null, seen: false, open: new Map() }));
  }

  /** Not every state is known here: nothing can be said. */
  blind(entry: number): void {
    this.#blindSince ??= entry;
  }

  /** Looks at the states after an entry. */
  look(standing: Standing<V>, entry: number): void {
    this.#hasLooked = true;
    for (const one of this.#cases) {
      const { property } = one;
      if (one.violatedAt !== null) continue;
      if (property.when === "leadsTo") follow(one, property, standing, entry);
      else if (property.when === "sometimes") one.seen ||= property.holds(standing.world);
      else if (isDue(property, standing) && !property.holds(standing.world)) one.violatedAt = entry;
    }
  }

  /** What has been found so far, were this the end. */
  conclude(world: World<StateOf<V>>): ReplayFinding<V>[] {
    return this.#cases.map((one) => ({
      property: one.property,
      entry: null,
      node: null,
      why: "",
      ...this.#of(one, world),
    }));
  }

  #of(
    { property, violatedAt, seen, open }: Case<V>,
    world: World<StateOf<V>>,
  ): Partial<ReplayFinding<V>> & { verdict: ReplayVerdict } {
    if (violatedAt !== null) return { verdict: "violated", entry: violatedAt };
    if (!this.#hasLooked && this.#blindSince === null) return unknown("nothing happens in this recording");
    if (property.when === "sometimes" && seen) return { verdict: "holds" };
    if (this.#blindSince !== null) return unknown("not every state is known", this.#blindSince);
    if (property.when === "sometimes") return unknown("it was not seen in this run");
    const [oldest] = open;
    if (oldest !== undefined) return { ...unknown("still open where the recording ends", oldest[1]), node: oldest[0] };
    if (property.when === "eventually" && !property.holds(world)) return unknown("not so where the recording ends");
    return { verdict: "holds" };
  }
}

const unknown = (why: string, entry: number | null = null) => ({ verdict: "unknown" as const, why, entry });

function isDue<V extends Vocabulary>({ when, pendingTimers = [] }: StateProperty<V>, standing: Standing<V>): boolean {
  if (when === "always") return true;
  return when === "quiescent" && standing.nothingInFlight && !pendingTimers.some((timer) => standing.isArmed(timer));
}

/** A node's case opens where `given` holds of it, and closes where `holds` does or where it crashes. */
function follow<V extends Vocabulary>(
  { open }: Case<V>,
  property: LeadsTo<V>,
  { world, isAlive }: Standing<V>,
  entry: number,
): void {
  for (const node of open.keys()) if (!isAlive(node) || property.holds(world, node)) open.delete(node);
  for (const node of world.alive)
    if (!open.has(node) && property.given(world, node) && !property.holds(world, node)) open.set(node, entry);
}

/** `sometimes` is a claim about all runs together, so one run without it says nothing. */
export function overall<V extends Vocabulary>(findings: readonly ReplayFinding<V>[]): ReplayVerdict {
  if (findings.some(({ verdict }) => verdict === "violated")) return "violated";
  return findings.every(({ verdict, property }) => verdict === "holds" || property.when === "sometimes")
    ? "holds"
    : "unknown";
}
