/**
 * The fault gate: a real node's messages can be dropped, delayed or cut off by command, for demos and tests. It stands
 * before the transport, so what it drops never left. Delays keep a link's messages in order.
 */
import type { NodeId } from "../core/protocol.ts";
import { list, natural, real, struct } from "../core/shape.ts";

export interface Faults {
  /** Messages to these nodes are dropped. */
  cutTo: NodeId[];
  /** The probability that a message is dropped, 0 … 1. */
  dropRate: number;
  /** Every message waits for a time drawn between the two first. */
  delayMs: { min: number; max: number };
}

export const faultsShape = struct<Faults>({
  cutTo: list(natural, 1_000),
  dropRate: real,
  delayMs: struct<Faults["delayMs"]>({ min: real, max: real }),
});

export const noFaults: Faults = { cutTo: [], dropRate: 0, delayMs: { min: 0, max: 0 } };

/** What becomes of one message: it is lost, or it leaves after so many milliseconds. */
export type Verdict = "cut" | "dropped" | number;

export interface FaultGate {
  faults: Faults;
  verdict(to: NodeId): Verdict;
}

export function faultGate(): FaultGate {
  return {
    faults: noFaults,
    verdict(to) {
      const { faults } = this;
      if (faults === noFaults) return 0;
      if (faults.cutTo.includes(to)) return "cut";
      if (faults.dropRate > 0 && Math.random() < faults.dropRate) return "dropped";
      const { min, max } = faults.delayMs;
      return max > 0 ? min + Math.random() * (max - min) : 0;
    },
  };
}
