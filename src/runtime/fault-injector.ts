/**
 * The fault injector: a real node's messages can be dropped, delayed or cut off by command, for demos and tests. It stands
 * before the transport, so what it drops never left. Delays keep a link's messages in order; datagrams, which IP multicast
 * loses, copies and lets overtake each other anyway, can be treated so here, too, for each receiver by itself.
 */
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import { list, natural, problem, real, struct } from "../core/shape.ts";
import type { Random } from "./platform/platform.ts";

export interface Faults {
  /** Messages to these nodes are dropped. */
  cutTo: NodeId[];
  /** The probability that a message is dropped, 0 … 1. */
  dropRate: number;
  /** Every message waits for a time drawn between the two first. */
  delayMs: { min: number; max: number };
  /** What becomes of datagrams besides. */
  datagrams?: DatagramFaults;
}

/** Probabilities, 0 … 1, for each datagram and receiver. */
export interface DatagramFaults {
  dropRate: number;
  /** It comes again a little later. */
  duplicateRate: number;
  /** It comes after some that were sent later. */
  reorderRate: number;
}

const faultsShape = struct<Omit<Faults, "datagrams">>({
  cutTo: list(natural, 1_000),
  dropRate: real,
  delayMs: struct<Faults["delayMs"]>({ min: real, max: real }),
});

const datagramsShape = struct<DatagramFaults>({ dropRate: real, duplicateRate: real, reorderRate: real });
const soundDatagrams: DatagramFaults = { dropRate: 0, duplicateRate: 0, reorderRate: 0 };

/** Longer than any demo waits for, and short enough that what is held back leaves while somebody remembers why. */
const MAX_DELAY_MS = 60_000;

/**
 * The faults that somebody asks for; of a fault that they leave out there is none.
 * @throws UsageError that names the field.
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

/** What is wrong, in one sentence that names the field, or null. */
function faultsProblem(faults: unknown): string | null {
  const wrong = problem(faultsShape, faults, "faults");
  if (wrong !== null) return wrong;
  const { dropRate, delayMs } = faults as Faults;
  if (dropRate < 0 || dropRate > 1) return unexpected("faults.dropRate", "from 0 to 1", dropRate);
  if (delayMs.min < 0) return unexpected("faults.delayMs.min", "at least 0", delayMs.min);
  if (delayMs.max < delayMs.min || delayMs.max > MAX_DELAY_MS)
    return unexpected("faults.delayMs.max", `from its min to ${MAX_DELAY_MS}`, delayMs.max);
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

export const noFaults: Faults = { cutTo: [], dropRate: 0, delayMs: { min: 0, max: 0 } };

/** What becomes of one message: it is lost, or it leaves after so many milliseconds. */
export type Verdict = "cut" | "dropped" | number;

/** What becomes of one datagram on its way to one member: it is lost, or it arrives after so many milliseconds each time. */
export type DatagramVerdict = "cut" | "dropped" | readonly number[];

export interface FaultInjector {
  faults: Faults;
  /** There are no faults. */
  readonly isCalm: boolean;
  verdict(to: NodeId): Verdict;
  datagramVerdict(to: NodeId): DatagramVerdict;
}

/** Far more than datagrams that leave one after the other are apart. */
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
