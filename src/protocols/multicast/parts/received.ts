/** Which messages have come of which sender, in little room: numbers without a gap are one number. */
import type { NodeId } from "../../../core/protocol.ts";

export type Received = {
  from: NodeId;
  /** All messages up to this one, which count from 1. */
  upTo: number;
  /** Beyond a gap, ascending. */
  beyond: number[];
};

export function isReceived(all: readonly Received[], from: NodeId, number: number): boolean {
  const of = all.find((each) => each.from === from);
  return of !== undefined && (number <= of.upTo || of.beyond.includes(number));
}

/** Whether all of the others are among these. */
export const areReceived = (all: readonly Received[], others: readonly Received[]): boolean =>
  others.every(({ from, upTo, beyond }) =>
    [upTo, ...beyond].every((number) => number === 0 || isReceived(all, from, number)),
  );

/** The same with one more, which is not among them yet; senders ascend. */
export function received(all: readonly Received[], from: NodeId, number: number): Received[] {
  const before = all.find((each) => each.from === from) ?? { from, upTo: 0, beyond: [] };
  const beyond = [...before.beyond, number].sort((a, b) => a - b);
  let { upTo } = before;
  while (beyond[0] === upTo + 1) upTo = beyond.shift() as number;
  const others = all.filter((each) => each.from !== from);
  return [...others, { from, upTo, beyond }].sort((a, b) => a.from - b.from);
}
