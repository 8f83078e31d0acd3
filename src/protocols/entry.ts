/** What the registry says of an algorithm: one declaration, from which the forms follow in which it runs. */
import type { NodeId, Property, Protocol, Tagged, Vocabulary } from "../core/protocol.ts";
import type { Family } from "./family.ts";
import type { DeclaredPresentation } from "./headlines.ts";
import { type Presentation, partIn } from "./presentation.ts";
import { type AnyMaker, composed, defaulting, type System } from "./system.ts";

/** Users of the registry handle every algorithm alike: the type bag is forgotten. */
export type AnyProtocol = Protocol<Vocabulary>;
type Maker = (options?: object) => AnyProtocol;

export interface RegistryEntry {
  /** One line for lists. */
  readonly summary: string;
  readonly family: Family;
  /** What simulator and checker run: the algorithm as the book has it, with its workload. */
  readonly model: Maker;
  /** What runs on real processes: the algorithm with the parts that it needs there. */
  readonly node: Maker;
  /** Other models, by name. */
  readonly variants: Readonly<Record<string, Variant>>;
  /** Whether it has to be started to do anything; others answer from rest, as if they had been running idly. */
  readonly mustStart: boolean;
  /** The options that put the nodes on a ring in this order; null where there is no ring. */
  readonly onRing: ((ring: readonly NodeId[]) => object) | null;
  /** What the checker cannot see for itself in the `model` form. */
  readonly check: CheckHints;
  /** How its runs are shown to people. */
  readonly presentation: Presentation;
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
  readonly timers?: "quiet" | "rounds";
  readonly crashNotifications?: "any" | "last";
  /** The form that is explored unless somebody names another, where the plain one has too many runs. */
  readonly variant?: string;
}

export interface Variant {
  readonly summary: string;
  readonly model: Maker;
  /** Where it differs from the entry: whether it has to be started to do anything; false: it has been running for long. */
  readonly mustStart?: boolean;
  /** As in the hints for the checker, where the variant has such fields, too. */
  readonly counters?: readonly string[];
  readonly crashNotification?: CheckHints["crashNotification"];
  /** Whether every run of it ends, so that the checker needs none of the bounds above. */
  readonly ends?: true;
}

/** What an entry says beside its algorithm. */
interface Declaration {
  /** What the deliveries of a multicast should keep, beside what all of them do. */
  readonly orders?: readonly Property<never>[];
  /** Whether the model has the failure detector, too; otherwise its driver tells nodes of crashes. */
  readonly detects?: true;
  /** Whether real processes have it. */
  readonly isDetectedInNodes?: false;
  /** Defaults of the algorithm where there is a failure detector: without these options nobody tells it of suspicions. */
  readonly whereDetected?: object;
  readonly variants?: Readonly<Record<string, DeclaredVariant>>;
  /** The textbook's algorithm, where what runs on real processes is hardened. */
  readonly model?: AnyMaker;
  /** What runs on real processes, where that is something else. */
  readonly node?: AnyMaker;
  readonly mustStart?: boolean;
  readonly onRing?: RegistryEntry["onRing"];
  readonly check?: CheckHints;
  /** Where its family's presentation does not do. */
  readonly shown?: DeclaredPresentation;
}

/** A variant is the entry with something in its place, or a model of its own. */
type DeclaredVariant = Omit<Variant, "model"> &
  Pick<Declaration, "orders" | "detects"> & { readonly algorithm?: AnyMaker | System; readonly model?: AnyMaker };

/** @param algorithm alone, or the system in which it stands. */
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

/** Its rule for positions speaks of the algorithm, which stands among other parts wherever it is run. */
function ofPart(presentation: Presentation, part: string): Presentation {
  const { position } = presentation;
  return {
    ...presentation,
    position: (state, node, options) => position(partIn(state, part), node, partIn(options, part)),
  };
}

const systemOf = ({ part }: Family, algorithm: AnyMaker | System): System =>
  typeof algorithm === "function" ? { parts: { [part]: algorithm }, wires: {}, algorithm: part } : algorithm;

/** With the workload of its family, if that has one. */
const whole = (family: Family, system: System, orders: readonly Property<never>[] = []): AnyMaker =>
  family.withWorkload?.(system, orders) ?? plain(system);

/** An algorithm that stands alone is no assembly. */
function plain(system: System): AnyMaker {
  const makers = Object.values(system.parts);
  return makers.length === 1 ? (makers[0] as AnyMaker) : composed(system);
}

function withoutDetector(system: System): System {
  const { detector: _detector, ...parts } = system.parts;
  const { detector: _wires, ...wires } = system.wires;
  return { ...system, parts, wires };
}
