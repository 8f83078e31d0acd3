/**
 * The fault gate: a real node's messages can be dropped, delayed or cut off by command, for demos and tests. It stands
 * before the transport, so what it drops never left. Delays keep a link's messages in order.
 */
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import { list, natural, problem, real, struct } from "../core/shape.ts";

export interface Faults {
  /** Messages to these nodes are dropped. */
  cutTo: NodeId[];
  /** The probability that a message is dropped, 0 … 1. */
  dropRate: number;
  /** Every message waits for a time drawn between the two first. */
  delayMs: { min: number; max: number };
}

const faultsShape = struct<Faults>({
  cutTo: list(natural, 1_000),
  dropRate: real,
  delayMs: struct<Faults["delayMs"]>({ min: real, max: real }),
});

/** Longer than any demo waits for, and short enough that what is held back leaves while somebody remembers why. */
const MAX_DELAY_MS = 60_000;

/**
 * The faults that somebody asks for; of a fault that they leave out there is none.
 * @throws UsageError that names the field.
 */
export function readFaults(asked: unknown): Faults {
  const isRecord = typeof asked === "object" && asked !== null && !Array.isArray(asked);
  const faults: unknown = isRecord ? { ...noFaults, ...asked } : asked;
  const wrong = faultsProblem(faults);
  if (wrong !== null) throw new UsageError("bad-faults", wrong);
  return faults as Faults;
}

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

export const noFaults: Faults = { cutTo: [], dropRate: 0, delayMs: { min: 0, max: 0 } };

/** What becomes of one message: it is lost, or it leaves after so many milliseconds. */
export type Verdict = "cut" | "dropped" | number;

export interface FaultGate {
  faults: Faults;
  verdict(to: NodeId): Verdict;
}

export function faultGate(): FaultGate {
  let faults = noFaults;
  let isCalm = true;
  return {
    get faults() {
      return faults;
    },
    set faults(wanted) {
      faults = wanted;
      isCalm = wanted.cutTo.length === 0 && wanted.dropRate === 0 && wanted.delayMs.max === 0;
    },
    verdict(to) {
      if (isCalm) return 0;
      if (faults.cutTo.includes(to)) return "cut";
      if (faults.dropRate > 0 && Math.random() < faults.dropRate) return "dropped";
      const { min, max } = faults.delayMs;
      return max > 0 ? min + Math.random() * (max - min) : 0;
    },
  };
}
