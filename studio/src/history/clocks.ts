/**
 * Vector clocks for the remembered entries, counted from when the page began to listen. They are computed on demand.
 * When entries arrive, only each node's own steps are counted.
 */
import { merge, type VectorClock } from "../../../src/core/clocks.ts";
import type { NodeId } from "../../../src/core/protocol.ts";
import type { TraceEntry } from "../../../src/trace/entry.ts";
import { beginsStep } from "../../../src/trace/steps.ts";

/** Counts the steps of each node to determine which step an entry belongs to. */
export class StepCounts {
  readonly #counts = new Map<NodeId, number>();

  take({ node, kind }: TraceEntry): number {
    const before = this.#counts.get(node) ?? 0;
    const step = beginsStep(kind) || before === 0 ? before + 1 : before;
    if (step !== before) this.#counts.set(node, step);
    return step;
  }
}

/** The fields of a message that clocks depend on. */
interface Ends {
  readonly from: NodeId;
  readonly to: NodeId;
  readonly sentStep: number | null;
  readonly receivedStep: number | null;
}

interface Arrival {
  readonly from: NodeId;
  readonly sentStep: number;
  readonly step: number;
}

/** Returns a function that computes the clock of a node's step from the messages received up to that step. */
export function clocksOf(messages: readonly Ends[]): (node: NodeId, step: number) => VectorClock {
  const arrivals = new Map<NodeId, Arrival[]>();
  for (const { from, to, sentStep, receivedStep: step } of messages) {
    if (sentStep === null || step === null) continue;
    const known = arrivals.get(to);
    if (known === undefined) arrivals.set(to, [{ from, sentStep, step }]);
    else known.push({ from, sentStep, step });
  }
  for (const each of arrivals.values()) each.sort((a, b) => a.step - b.step);
  /** Each node's clocks. Each clock is valid from a given step on. */
  const known = new Map<NodeId, { step: number; clock: VectorClock }[]>();
  const clockAt = (node: NodeId, step: number): VectorClock => ({
    ...known.get(node)?.findLast((each) => each.step <= step)?.clock,
    [node]: step,
  });
  const done = new Map<NodeId, number>();
  const isReady = ({ from, sentStep }: Arrival): boolean =>
    (arrivals.get(from)?.[done.get(from) ?? 0]?.step ?? Infinity) > sentStep;
  for (let hasProgressed = true; hasProgressed; ) {
    hasProgressed = false;
    for (const [node, own] of arrivals) {
      const history = known.get(node) ?? [];
      known.set(node, history);
      for (let next = own[done.get(node) ?? 0]; next !== undefined && isReady(next); next = own[done.get(node) ?? 0]) {
        history.push({ step: next.step, clock: merge(clockAt(node, next.step), clockAt(next.from, next.sentStep)) });
        done.set(node, (done.get(node) ?? 0) + 1);
        hasProgressed = true;
      }
    }
  }
  return clockAt;
}
