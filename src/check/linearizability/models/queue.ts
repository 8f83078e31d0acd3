/** A first-in-first-out queue. Equal values may be queued more than once. */
import { unexpected } from "../../../core/errors.ts";
import { canonical, equal } from "../../../core/plain.ts";
import type { Operation, Value } from "../history.ts";
import { type Model, type ModelCall, showValue } from "../model.ts";

type Queued = readonly Value[];

const enqueue: ModelCall<Queued> = {
  problem: ({ input }) => (input === null ? unexpected("the value of the call", "what to enqueue", input) : null),
  step: (queued, { input }) => [...queued, input],
};

/** Output `null` says that the queue was empty. */
const dequeue: ModelCall<Queued> = {
  step(queued, { output }) {
    const [first, ...rest] = queued;
    if (first === undefined) return output === null || output === undefined ? queued : null;
    return output === undefined || (output !== null && equal(output, first)) ? rest : null;
  },
  observes: ({ output }) => output === null,
};

/**
 * A value is needed in the queue when it is dequeued, so enqueues are best tried in the order of dequeues. Of equal values
 * the first one in is taken to be the first one out.
 */
function foresee(operations: readonly Operation[]): (operation: Operation) => number {
  const takings = new Map<string, number[]>();
  const byTime = [...operations].sort((a, b) => endOf(a) - endOf(b));
  for (const operation of byTime) {
    const { f, output } = operation;
    if (f !== "dequeue" || output === undefined || output === null) continue;
    const times = takings.get(canonical(output)) ?? [];
    if (times.push(endOf(operation)) === 1) takings.set(canonical(output), times);
  }
  const needed = new Map<Operation, number>();
  for (const operation of [...operations].sort((a, b) => a.call - b.call)) {
    const taken = operation.f === "enqueue" ? takings.get(canonical(operation.input))?.shift() : endOf(operation);
    needed.set(operation, taken ?? Number.POSITIVE_INFINITY);
  }
  return (operation) => needed.get(operation) ?? endOf(operation);
}

const endOf = (operation: Operation): number => operation.return ?? Number.POSITIVE_INFINITY;

export const queue = (): Model<Queued> => ({
  name: "queue",
  about: "enqueue, dequeue (null when empty), first in first out",
  init: [],
  calls: { enqueue, dequeue },
  foresee,
  show: (queued) => `[${queued.map(showValue).join(" ")}]`,
});
