/** One registry entry per algorithm. All forms of an algorithm are derived from its single declaration. */
import type { NodeId, Property, Protocol, Tagged, Vocabulary } from "../core/protocol.ts";
import type { Family } from "./family.ts";
import type { DeclaredPresentation } from "./headlines.ts";
import { type Presentation, partIn } from "./presentation.ts";
import { type AnyMaker, composed, defaulting, type System } from "./system.ts";

/** A protocol without its specific message types. Code that uses the registry treats all algorithms alike. */
export type AnyProtocol = Protocol<Vocabulary>;
type Maker = (options?: object) => AnyProtocol;

/** Everything that the tools know about one algorithm. */
export interface RegistryEntry {
  /** A one-line description for lists. */
  readonly summary: string;
  readonly family: Family;
  /** The form for the simulator and the checker: the textbook algorithm with its workload. */
  readonly model: Maker;
  /** The form for real processes: the algorithm with the parts that it needs there. */
  readonly node: Maker;
  /** Other models, by name. */
  readonly variants: Readonly<Record<string, Variant>>;
  /** Whether nodes must be started before they do anything. Otherwise they act as if they had been running idly. */
  readonly mustStart: boolean;
  /** Returns the options that arrange the nodes on a ring in the given order. Null if the algorithm uses no ring. */
  readonly onRing: ((ring: readonly NodeId[]) => object) | null;
  /** Hints that the checker cannot derive from the `model` form. */
  readonly check: CheckHints;
  /** How runs of the algorithm are displayed. */
  readonly presentation: Presentation;
}

/** Hints for the checker about one algorithm. */
export interface CheckHints {
  /** Returns the command that notifies a node of another node's crash. */
  readonly crashNotification?: (crashed: NodeId) => Tagged;
  /**
   * Fields that hold counters. Counters are only compared and incremented, so the checker treats states as equal up to a
   * shift.
   */
  readonly counters?: readonly string[];
  /** Default bound on messages in flight (with free timers). Without a bound, the search would not end. */
  readonly maxInFlight?: number;
  /** Default bound on timeouts, for the same reason. */
  readonly maxTimeouts?: number;
  /** Default behavior of timers, and whether crashes are detected. */
  readonly timers?: "quiet" | "rounds";
  readonly crashNotifications?: "any" | "last";
  /** The variant that is explored by default, for algorithms whose plain form has too many runs. */
  readonly variant?: string;
}

/** Another form of an algorithm. */
export interface Variant {
  readonly summary: string;
  readonly model: Maker;
  /** Overrides `mustStart` of the entry. False: the nodes have been running for a long time. */
  readonly mustStart?: boolean;
  /** Overrides the hint for the checker, for variants that have such counters. */
  readonly counters?: readonly string[];
  readonly crashNotification?: CheckHints["crashNotification"];
  /** Whether every run ends, so that the checker needs none of the bounds above. */
  readonly ends?: true;
}

/** The parts of an entry that follow from neither its family nor its algorithm. */
interface Declaration {
  /** Ordering properties that deliveries of a multicast must satisfy, in addition to the common ones. */
  readonly orders?: readonly Property<never>[];
  /** Whether the model includes the failure detector. Otherwise the driver notifies nodes of crashes. */
  readonly detects?: true;
  /** False if real processes run without the failure detector. */
  readonly isDetectedInNodes?: false;
  /** Defaults of the algorithm when a failure detector is present. Without these options it receives no suspicions. */
  readonly whereDetected?: object;
  readonly variants?: Readonly<Record<string, DeclaredVariant>>;
  /** The textbook algorithm, if real processes run a hardened one. */
  readonly model?: AnyMaker;
  /** The algorithm for real processes, if it differs. */
  readonly node?: AnyMaker;
  readonly mustStart?: boolean;
  readonly onRing?: RegistryEntry["onRing"];
  readonly check?: CheckHints;
  /** Overrides the presentation of the family. */
  readonly shown?: DeclaredPresentation;
}

/** A variant: the entry with some values replaced, or a model of its own. */
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

/** Adapts the rule for positions, which is written for the algorithm, to states that consist of several parts. */
function ofPart(presentation: Presentation, part: string): Presentation {
  const { position } = presentation;
  return {
    ...presentation,
    position: (state, node, options) => position(partIn(state, part), node, partIn(options, part)),
  };
}

const systemOf = ({ part }: Family, algorithm: AnyMaker | System): System =>
  typeof algorithm === "function" ? { parts: { [part]: algorithm }, wires: {}, algorithm: part } : algorithm;

/** Adds the workload of the family, if it has one. */
const whole = (family: Family, system: System, orders: readonly Property<never>[] = []): AnyMaker =>
  family.withWorkload?.(system, orders) ?? plain(system);

/** A system with a single part needs no assembly. */
function plain(system: System): AnyMaker {
  const makers = Object.values(system.parts);
  return makers.length === 1 ? (makers[0] as AnyMaker) : composed(system);
}

function withoutDetector(system: System): System {
  const { detector: _detector, ...parts } = system.parts;
  const { detector: _wires, ...wires } = system.wires;
  return { ...system, parts, wires };
}
