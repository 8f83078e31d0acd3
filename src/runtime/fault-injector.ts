/**
 * The fault injector: drops, delays or cuts off a real node's messages on request, for demos and tests. It runs before
 * the transport, so a dropped message never leaves the node. Delayed messages on one link stay in order. Datagrams can
 * also be lost, duplicated and reordered, separately for each receiver, as in real IP multicast.
 */
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import { list, natural, problem, real, struct } from "../core/shape.ts";
import type { Random } from "./platform/platform.ts";

/** The faults to inject into a node's outgoing messages. */
export interface Faults {
  /** Messages to these nodes are dropped. */
  cutTo: NodeId[];
  /** The probability that a message is dropped, from 0 to 1. */
  dropRate: number;
  /** The range of each message's delay. Delays are distributed uniformly. */
  delayMs: { min: number; max: number };
  /** Additional faults for datagrams. */
  datagrams?: DatagramFaults;
}

/** Probabilities from 0 to 1, applied separately to each datagram and receiver. */
export interface DatagramFaults {
  dropRate: number;
  /** The probability that a datagram arrives a second time, slightly later. */
  duplicateRate: number;
  /** The probability that a datagram arrives after ones that were sent later. */
  reorderRate: number;
}

const faultsShape = struct<Omit<Faults, "datagrams">>({
  cutTo: list(natural, 1_000),
  dropRate: real,
  delayMs: struct<Faults["delayMs"]>({ min: real, max: real }),
});

const datagramsShape = struct<DatagramFaults>({ dropRate: real, duplicateRate: real, reorderRate: real });
const soundDatagrams: DatagramFaults = { dropRate: 0, duplicateRate: 0, reorderRate: 0 };

/** Longer than any demo needs, but short enough that users still remember why a message arrives late. */
const MAX_DELAY_MS = 60_000;

/**
 * Parses the requested faults. Faults that are omitted are off.
 * @throws UsageError if a field is invalid. The message names the field.
 */
export function readFaults(asked: unknown): Faults {
  if (!isRecord(asked)) throw new UsageError("bad-faults", unexpected("faults", "an object", asked));
  const { datagrams: askedDatagrams, ...others } = asked;
  const faults: unknown = { ...noFaults, ...others };
  const wrong = faultsProblem(faults);
  if (wrong !== null) throw new UsageError("bad-faults", wrong);
  if (askedDatagrams === undefined) return faults as Faults;
  const datagrams = isRecord(askedDatagrams) ? { ...soundDatagrams, ...askedDatagrams } : askedDatagrams;
  const wrongDatagrams = datagramsProblem(datagrams);
  if (wrongDatagrams !== null) throw new UsageError("bad-faults", wrongDatagrams);
  return { ...(faults as Faults), datagrams: datagrams as DatagramFaults };
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns a sentence that describes the problem and names the field, or null if the faults are valid. */
function faultsProblem(faults: unknown): string | null {
  const wrong = problem(faultsShape, faults, "faults");
  if (wrong !== null) return wrong;
  const { dropRate, delayMs } = faults as Faults;
  if (dropRate < 0 || dropRate > 1) return unexpected("faults.dropRate", "from 0 to 1", dropRate);
  if (delayMs.min < 0) return unexpected("faults.delayMs.min", "at least 0", delayMs.min);
  if (delayMs.max < delayMs.min || delayMs.max > MAX_DELAY_MS)
    return unexpected("faults.delayMs.max", `between its min and ${MAX_DELAY_MS}`, delayMs.max);
  return null;
}

function datagramsProblem(datagrams: unknown): string | null {
  const wrong = problem(datagramsShape, datagrams, "faults.datagrams");
  if (wrong !== null) return wrong;
  for (const [name, rate] of Object.entries(datagrams as DatagramFaults)) {
    if (rate < 0 || rate > 1) return unexpected(`faults.datagrams.${name}`, "from 0 to 1", rate);
  }
  return null;
}

/** A healthy network: all faults are off. */
export const noFaults: Faults = { cutTo: [], dropRate: 0, delayMs: { min: 0, max: 0 } };

/** The fate of one message: lost, or sent after this many milliseconds. */
export type Verdict = "cut" | "dropped" | number;

/** The fate of one datagram for one member: lost, or delivered once after each of these delays, in milliseconds. */
export type DatagramVerdict = "cut" | "dropped" | readonly number[];

export interface FaultInjector {
  faults: Faults;
  readonly isCalm: boolean;
  verdict(to: NodeId): Verdict;
  datagramVerdict(to: NodeId): DatagramVerdict;
}

/** The delay of a reordered datagram. It is much longer than the time between consecutive datagrams. */
const OVERTAKEN_MS = { min: 1, max: 20 };

export function faultInjector({ fraction }: Pick<Random, "fraction">): FaultInjector {
  const happens = (rate: number): boolean => rate > 0 && fraction() < rate;
  const between = ({ min, max }: { min: number; max: number }): number =>
    max > 0 ? min + fraction() * (max - min) : 0;
  let faults = noFaults;
  let isCalm = true;
  const verdict = (to: NodeId): Verdict => {
    if (isCalm) return 0;
    if (faults.cutTo.includes(to)) return "cut";
    if (happens(faults.dropRate)) return "dropped";
    return between(faults.delayMs);
  };
  return {
    get faults() {
      return faults;
    },
    set faults(wanted) {
      faults = wanted;
      const rates = [wanted.dropRate, wanted.delayMs.max, ...Object.values(wanted.datagrams ?? {})];
      isCalm = wanted.cutTo.length === 0 && rates.every((rate) => rate === 0);
    },
    get isCalm() {
      return isCalm;
    },
    verdict,
    datagramVerdict(to) {
      const asMessage = verdict(to);
      const { dropRate, duplicateRate, reorderRate } = faults.datagrams ?? soundDatagrams;
      if (typeof asMessage === "string") return asMessage;
      if (happens(dropRate)) return "dropped";
      const first = asMessage + (happens(reorderRate) ? between(OVERTAKEN_MS) : 0);
      return happens(duplicateRate) ? [first, first + between(OVERTAKEN_MS)] : [first];
    },
  };
}
