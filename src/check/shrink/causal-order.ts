/** The same run, told so that what leads to what stands together. */
import { canonical } from "../../core/plain.ts";
import type { NodeId, Vocabulary } from "../../core/protocol.ts";
import type { Taken } from "../path.ts";

/**
 * Another order of the same moves in which every node does what it did in the same order and nothing is received before
 * it was sent: after each move comes one that it has led to, if there is one, or else the earliest that may come.
 */
export function causallyOrdered<V extends Vocabulary>(path: readonly Taken<V>[]): Taken<V>[] {
  const causes = causesOf(path);
  const left = new Set(path.keys());
  const order: number[] = [];
  while (left.size > 0) {
    const ready = [...left].filter((at) => (causes[at] as readonly number[]).every((cause) => !left.has(cause)));
    const last = order.at(-1);
    const next = ready.find((at) => last !== undefined && causes[at]?.includes(last)) ?? ready[0];
    if (next === undefined) break; // There is always one: causes come first.
    left.delete(next);
    order.push(next);
  }
  return order.map((at) => path[at] as Taken<V>);
}

/** For each move the index of the one before it at its node, and of the one that sent what it receives. */
function causesOf<V extends Vocabulary>(path: readonly Taken<V>[]): number[][] {
  const lastOf = new Map<NodeId, number>();
  const onTheirWay: { key: string; at: number }[] = [];
  return path.map(({ move, sends }, at) => {
    const causes: number[] = [];
    const before = lastOf.get(move.node);
    if (before !== undefined) causes.push(before);
    lastOf.set(move.node, at);
    if ("message" in move) {
      const key = canonical([move.from, move.node, move.message]);
      const sent = onTheirWay.findIndex((each) => each.key === key);
      if (sent >= 0) causes.push(onTheirWay[sent]?.at as number);
      if (sent >= 0 && move.kind !== "duplicate") onTheirWay.splice(sent, 1);
    }
    for (const { to, message } of sends) onTheirWay.push({ key: canonical([move.node, to, message]), at });
    return causes;
  });
}
