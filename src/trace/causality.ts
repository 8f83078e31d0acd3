/** What happened before what in a trace, by Fidge's and Mattern's vector clocks (K2). */
import { advance, merge, type VectorClock } from "../core/clocks.ts";
import type { NodeId } from "../core/protocol.ts";
import type { MessageId, TraceEntry } from "./entry.ts";

/**
 * The clock of each entry, in the order of the entries. One step of a node (a start, receipt, time-out or command, and
 * all that it led to there) is one event, so the entries of a step share a clock.
 */
export function vectorClocks(entries: readonly TraceEntry[]): VectorClock[] {
  const clocks = new Map<NodeId, VectorClock>();
  const sent = new Map<MessageId, VectorClock>();
  return entries.map((entry) => {
    const { node, kind } = entry;
    let clock = clocks.get(node) ?? {};
    if (kind === "receive") clock = merge(clock, sent.get(entry.id) ?? {});
    if (BEGINS_STEP.has(kind)) clock = advance(clock, node);
    if (kind === "send") sent.set(entry.id, clock);
    clocks.set(node, clock);
    return clock;
  });
}

const BEGINS_STEP: ReadonlySet<TraceEntry["kind"]> = new Set(["start", "crash", "receive", "timeout", "command"]);
