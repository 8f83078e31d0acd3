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

/** A value that was enqueued, and when it was dequeued if it was. */
interface Passage {
  readonly enqueued: Operation;
  readonly dequeued: Operation | null;
}

/**
 * Dequeues first, since an emptier queue never hurts; then enqueues in an order that neither the real time of the enqueues
 * nor that of the dequeues contradicts. In the wrong order a value fails only when it is dequeued, long afterwards.
 */
function foresee(operations: readonly Operation[]): Operation[] {
  const dequeues = operations.filter(({ f }) => f === "dequeue").sort((a, b) => endOf(a) - endOf(b));
  const waiting = passages(operations, dequeues).sort((a, b) => endOf(a.dequeued) - endOf(b.dequeued));
  const byEnqueue = [...waiting].sort((a, b) => endOf(a.enqueued) - endOf(b.enqueued));
  const order: Operation[] = [];
  const done = new Set<Passage>();
  const mayBeNext = ({ enqueued, dequeued }: Passage): boolean =>
    enqueued.call <= endOf(byEnqueue[0]?.enqueued) && (dequeued?.call ?? Infinity) <= endOf(waiting[0]?.dequeued);
  while (waiting.length > 0) {
    const at = waiting.findIndex(mayBeNext);
    const [next] = waiting.splice(Math.max(at, 0), 1) as [Passage]; // Without any, there is no such order.
    done.add(next);
    while (byEnqueue[0] !== undefined && done.has(byEnqueue[0])) byEnqueue.shift();
    order.push(next.enqueued);
  }
  return [...dequeues, ...order];
}

/** Of equal values, the first one in is taken to be the first one out. */
function passages(operations: readonly Operation[], dequeues: readonly Operation[]): Passage[] {
  const takings = new Map<string, Operation[]>();
  for (const dequeued of dequeues) {
    const value = canonical(dequeued.output);
    const same = takings.get(value) ?? [];
    if (same.push(dequeued) === 1) takings.set(value, same);
  }
  const enqueues = operations.filter(({ f }) => f === "enqueue").sort((a, b) => a.call - b.call);
  return enqueues.map((enqueued) => ({ enqueued, dequeued: takings.get(canonical(enqueued.input))?.shift() ?? null }));
}

const endOf = (operation: Operation | null | undefined): number => operation?.return ?? Infinity;

export const queue = (): Model<Queued> => ({
  name: "queue",
  about: "enqueue, dequeue (null when empty), first in first out",
  init: [],
  calls: { enqueue, dequeue },
  foresee,
  show: (queued) => `[${queued.map(showValue).join(" ")}]`,
});
