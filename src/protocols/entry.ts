/** Registry entries, one per algorithm. All forms of an algorithm are derived from this one declaration. */
import type { NodeId, Property, Protocol, Tagged, Vocabulary } from "../core/protocol.ts";
import type { Family } from "./family.ts";
import type { DeclaredPresentation } from "./headlines.ts";
import { type Presentation, partIn } from "./presentation.ts";
import { type AnyMaker, composed, defaulting, type System } from "./system.ts";

/** A protocol without its specific message types. Code that uses the registry treats all algorithms alike. */
export type AnyProtocol = Protocol<Vocabulary>;
type Maker = (options?: object) => AnyProtocol;

/** Everything that the tools know about an algorithm. */
export interface RegistryEntry {
  /** A one-line description for lists. */
  readonly summary: string;
  /** The problem that the algorithm solves, with its commands and results. */
  readonly family: Family;
  /** The form for the simulator and the checker: the textbook algorithm with the family's workload. */
  readonly model: Maker;
  /** The form for real processes: the algorithm with the parts that it needs in a process. */
  readonly node: Maker;
  /** Other models, by name. */
  readonly variants: Readonly<Record<string, Variant>>;
  /**
   * Whether nodes do nothing until they are started. If false, they begin in the state of nodes that have been running
   * and idle.
   */
  readonly mustStart: boolean;
  /**
   * Returns the options that arrange the nodes on a ring in the given order. Null if the algorithm does not use a ring.
   */
  readonly onRing: ((ring: readonly NodeId[]) => object) | null;
  /** Hints that the checker cannot derive from the `model` form. */
  readonly check: CheckHints;
  /** How runs of the algorithm are displayed. */
  readonly presentation: Presentation;
}

/** Hints for the checker about an algorithm. */
export interface CheckHints {
  /** Returns the command that notifies a node of another node's crash. */
  readonly crashNotification?: (crashed: NodeId) => Tagged;
  /**
   * Names of counter fields. Because counters are only ever compared and incremented, the checker treats states as
   * equal if they differ only by a shift of the counters.
   */
  readonly counters?: readonly string[];
  /** The default bound on messages in flight (with free timers). Without a bound, the search would never end. */
  readonly maxInFlight?: number;
  /** The default bound on timeouts, for the same reason. */
  readonly maxTimeouts?: number;
  /** The default behavior of timers. */
  readonly timers?: "quiet" | "rounds";
  /** The default for when crash notifications arrive: see `ModelOptions.crashNotifications`. */
  readonly crashNotifications?: "any" | "last";
  /** The variant that is checked by default, for algorithms whose plain form has too many runs. */
  readonly variant?: string;
}

/** A named alternative form of an algorithm. */
export interface Variant {
  /** A one-line description for lists. */
  readonly summary: string;
  /** The form for the simulator and the checker. */
  readonly model: Maker;
  /** Overrides the entry's `mustStart`. False if the nodes have already been running for a long time. */
  readonly mustStart?: boolean;
  /** Overrides `counters` in the checker hints. */
  readonly counters?: readonly string[];
  /** Overrides `crashNotification` in the checker hints. */
  readonly crashNotification?: CheckHints["crashNotification"];
  /** Set if every run ends, so that the checker needs none of the bounds in `CheckHints`. */
  readonly ends?: true;
}

/** The parts of an entry that follow from neither its family nor its algorithm. */
export interface Declaration {
  /** Ordering properties that a multicast's deliveries must satisfy, in addition to the common ones. */
  readonly orders?: readonly Property<never>[];
  /** Set if the model includes the failure detector. Otherwise, the driver notifies nodes of crashes. */
  readonly detects?: true;
  /** Set to false if real processes run without the failure detector. */
  readonly isDetectedInNodes?: false;
  /** The algorithm's defaults when a failure detector is present. */
  readonly whereDetected?: object;
  readonly variants?: Readonly<Record<string, DeclaredVariant>>;
  /** The textbook algorithm, if real processes run a hardened version. */
  readonly model?: AnyMaker;
  /** The algorithm for real processes, if it differs from the declared one. */
  readonly node?: AnyMaker;
  readonly mustStart?: boolean;
  readonly onRing?: RegistryEntry["onRing"];
  readonly check?: CheckHints;
  /** Overrides of the family's presentation. */
  readonly shown?: DeclaredPresentation;
}

/** A variant: the entry with some values replaced, or with a different model. */
type DeclaredVariant = Omit<Variant, "model"> &
  Pick<Declaration, "orders" | "detects"> & { readonly algorithm?: AnyMaker | System; readonly model?: AnyMaker };

/** Creates a registry entry. @param algorithm the algorithm alone, or the system that contains it. */
export function entry(
  family: Family,
  summary: string,
  algorithm: AnyMaker | System,
  declared: Declaration = {},
): RegistryEntry {
  const {
    whereDetected = {},
    isDetectedInNodes = true,
    variants = {},
    mustStart = false,
    onRing = null,
    check = {},
  } = declared;
  const system = systemOf(family, algorithm);
  const alone = system.parts[family.part] as AnyMaker;
  const detected = { ...system.parts, [family.part]: defaulting(alone, whereDetected) };
  const monitored = Object.hasOwn(system.parts, "detector") ? { ...system, parts: detected } : system;

  function modelOf({
    orders = declared.orders,
    detects = declared.detects,
    ...given
  }: Omit<DeclaredVariant, "summary">) {
    if (given.model !== undefined) return given.model;
    const of = given.algorithm === undefined ? (detects ? monitored : system) : systemOf(family, given.algorithm);
    return whole(family, detects ? of : withoutDetector(of), orders);
  }
  const inNodes = isDetectedInNodes ? monitored : withoutDetector(system);
  return {
    family,
    summary,
    model: declared.model ?? modelOf({}),
    node: declared.node ?? (family.isUsedInNodes ? whole(family, inNodes) : plain(inNodes)),
    variants: Object.fromEntries(
      Object.entries(variants).map(([name, variant]) => {
        const { summary, mustStart, ends, counters, crashNotification } = variant;
        return [
          name,
          {
            summary,
            model: modelOf(variant),
            ...(mustStart === undefined ? {} : { mustStart }),
            ...(ends && { ends }),
            ...(counters && { counters }),
            ...(crashNotification && { crashNotification }),
          },
        ];
      }),
    ),
    mustStart,
    onRing,
    check,
    presentation: ofPart(family.shown(declared.shown), family.part),
  } as RegistryEntry;
}

/** Adapts the position rule, which only handles the algorithm's own state, to states that consist of several parts. */
function ofPart(presentation: Presentation, part: string): Presentation {
  const { position } = presentation;
  return {
    ...presentation,
    position: (state, node, options) => position(partIn(state, part), node, partIn(options, part)),
  };
}

const systemOf = ({ part }: Family, algorithm: AnyMaker | System): System =>
  typeof algorithm === "function" ? { parts: { [part]: algorithm }, wires: {}, algorithm: part } : algorithm;

/** Adds the family's workload, if it has one. */
const whole = (family: Family, system: System, orders: readonly Property<never>[] = []): AnyMaker =>
  family.withWorkload?.(system, orders) ?? plain(system);

/** Returns a function that creates the system. A system with a single part needs no assembly. */
function plain(system: System): AnyMaker {
  const makers = Object.values(system.parts);
  return makers.length === 1 ? (makers[0] as AnyMaker) : composed(system);
}

function withoutDetector(system: System): System {
  const { detector: _detector, ...parts } = system.parts;
  const { detector: _wires, ...wires } = system.wires;
  return { ...system, parts, wires };
}
