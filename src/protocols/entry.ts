/** What the registry says of an algorithm. */
import type { NodeId, Protocol, Tagged, Vocabulary } from "../core/protocol.ts";
import type { Family } from "./family.ts";

/** Whoever goes through the registry handles every algorithm alike: the type bag is forgotten. */
export type AnyProtocol = Protocol<Vocabulary>;
type Maker = (options?: object) => AnyProtocol;

export interface RegistryEntry {
  /** One line for lists. */
  readonly summary: string;
  readonly family: Family;
  /** What simulator and checker run: the algorithm as the book has it, with whoever uses it. */
  readonly model: Maker;
  /** What runs on real processes: the algorithm with the parts that it needs there. */
  readonly node: Maker;
  /** What `join()` runs by name: the algorithm alone, without a workload and without what a member has once for all. Null: it cannot. */
  readonly embedded: Maker | null;
  /** Other models, by name. */
  readonly variants: Readonly<Record<string, Variant>>;
  /** Whether it has to be started to do anything; others answer from rest, as if they had been running idly. */
  readonly mustStart: boolean;
  /** The options that put the nodes on a ring in this order; null where there is no ring. */
  readonly onRing: ((ring: readonly NodeId[]) => object) | null;
  /** What the checker cannot see for itself in the `model` form. */
  readonly check: CheckHints;
}

export interface CheckHints {
  /** The command that tells a node of another's crash. */
  readonly crashNotification?: (crashed: NodeId) => Tagged;
  /** Fields that hold numbers which are only compared with each other and counted up, so that states repeat up to a shift. */
  readonly counters?: readonly string[];
  /** So many messages on their way (with free timers) or time-outs at most, unless somebody says otherwise: there is no end to them. */
  readonly maxInFlight?: number;
  readonly maxTimeouts?: number;
  /** What timers may do, and whether crashes are noticed, unless somebody says otherwise. */
  readonly timers?: "quiet";
  readonly crashNotifications?: "any" | "last";
  /** The form that is explored unless somebody names another, where the plain one has too many runs. */
  readonly variant?: string;
}

export interface Variant {
  readonly summary: string;
  readonly model: Maker;
  /** Where it differs from the entry: whether it has to be started to do anything; false: it has been running for long. */
  readonly mustStart?: boolean;
  /** Whether every run of it ends, so that the checker needs none of the bounds above. */
  readonly ends?: true;
}

/** Every option that a maker takes is optional, and it refuses what it does not know. */
export type AnyMaker = (options?: never) => unknown;

interface Forms {
  readonly node?: AnyMaker;
  readonly embedded?: AnyMaker;
  readonly variants?: Readonly<Record<string, Omit<Variant, "model"> & { readonly model: AnyMaker }>>;
  readonly mustStart?: boolean;
  readonly onRing?: RegistryEntry["onRing"];
  readonly check?: CheckHints;
}

export function entry(family: Family, summary: string, model: AnyMaker, forms: Forms = {}): RegistryEntry {
  const { node = model, embedded = null, variants = {}, mustStart = false, onRing = null, check = {} } = forms;
  return { family, summary, model, node, embedded, variants, mustStart, onRing, check } as RegistryEntry;
}
