/** The entries of a trace grouped into steps: what reached a node, and all that it led to there. */
import type { NodeId } from "../core/protocol.ts";
import type { TraceEntry } from "./entry.ts";

export interface Step {
  readonly at: number;
  readonly node: NodeId;
  /** Of the trace, ascending. */
  readonly indices: readonly number[];
}

/** In the order of their first entries. */
export function stepsOf(entries: readonly TraceEntry[]): Step[] {
  const steps: { at: number; node: NodeId; indices: number[] }[] = [];
  const current = new Map<NodeId, (typeof steps)[number]>();
  for (const [index, entry] of entries.entries()) {
    const { at, node } = entry;
    const open = current.get(node);
    if (open !== undefined && goesOn(entry, open.at)) {
      open.indices.push(index);
      continue;
    }
    const step = { at, node, indices: [index] };
    steps.push(step);
    // A loss that is noticed at some time later has no part in what the node does.
    if (entry.kind !== "lost") current.set(node, step);
  }
  return steps;
}

function goesOn(entry: TraceEntry, since: number): boolean {
  if (entry.kind === "lost") return entry.at === since && entry.to !== entry.node;
  return entry.kind === "send" || entry.kind === "event" || entry.kind === "choice" || entry.kind === "view";
}
