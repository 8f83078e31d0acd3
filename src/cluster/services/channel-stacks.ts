/** Which of the stacks of multicasts runs under a channel. */
import { UsageError, unexpected } from "../../core/errors.ts";
import { type Order, type Stack, stackOf, stacks } from "../../protocols/multicast/family/stacks.ts";
import type { Transport } from "./channel-api.ts";

export const orders: readonly Order[] = ["none", "fifo", "causal", "total", "causal-total"];

export const stackFor = (order: Order, reliable: boolean, transport: Transport): Stack =>
  stackOf(order, reliable ? "views" : transport === "udp" ? "multicast" : "links");

/** Whether it sees to it itself that a multicast arrives. */
export const repairs = (algorithm: string): boolean => stackNamed(algorithm).carrier !== "links";

/** @throws UsageError that lists those there are. */
export function stackNamed(algorithm: string): Stack {
  const found = stacks.find((each) => each.algorithm === algorithm);
  if (found !== undefined) return found;
  const names = stacks.map((each) => each.algorithm).join(", ");
  throw new UsageError("unknown-algorithm", unexpected("the algorithm", `one of ${names}`, algorithm));
}
