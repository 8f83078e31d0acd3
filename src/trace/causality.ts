/** What happened before what in a trace, by Fidge's and Mattern's vector clocks (K2). */
import { advance, merge, type VectorClock } from "../core/clocks.ts";
import type { NodeId } from "../core/protocol.ts";
import type { MessageId, TraceEntry } from "./entry.ts";

/**
 * The clock of each entry, in the order of the entries. One step of a node (a start, receipt, time-out or command, and
 * all that it led to there) is one event, so the entries of a step share a clock.
 */
export function vectorClocks(entries: readonly TraceEntry[]): VectorClock[] {
  return entries.map(clockKeeper());
}

/**
 * Gives each entry its clock as it comes. A sending must come before its receipt. What it remembers grows with the
 * nodes and with the messages that are on their way or lost, not with the trace.
 */
export function clockKeeper(): (entry: TraceEntry) => VectorClock {
  const clocks = new Map<NodeId, VectorClock>();
  const sent = new Map<MessageId, VectorClock>();
  return (entry) => {
    const { node, kind } = entry;
    const before = clocks.get(node);
    let clock = before ?? {};
    if (kind === "receive") {
      clock = merge(clock, sent.get(entry.id) ?? {});
      sent.delete(entry.id); // The receiver knows it now: the receipt of a copy would teach it nothing.
    }
    // A recording may begin in the middle of a step.
    if (beginsStep(kind) || before === undefined) clock = advance(clock, node);
    if (kind === "send") sent.set(entry.id, clock);
    clocks.set(node, clock);
    return clock;
  };
}

/** Whether a step begins with such an entry; others belong to the step that their node is in. */
export const beginsStep = (kind: TraceEntry["kind"]): boolean => BEGINS_STEP.has(kind);

const BEGINS_STEP: ReadonlySet<TraceEntry["kind"]> = new Set([
  ...(["start", "crash", "receive", "timeout", "command"] as const),
  ...(["pause", "resume", "fault"] as const),
]);
