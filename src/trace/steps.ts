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

/**
 * The steps of which something is among the entries at `kept`, which ascend; indices are places in `kept`. Whatever a step
 * did stays in it, although what it began with may not be kept.
 */
export function stepsAmong(entries: readonly TraceEntry[], kept: readonly number[]): Step[] {
  const places = new Map(kept.map((index, place) => [index, place]));
  const steps = stepsOf(entries).flatMap(({ node, indices }): Step[] => {
    const left = indices.filter((index) => places.has(index));
    const first = entries[left[0] ?? -1];
    return first === undefined
      ? []
      : [{ at: first.at, node, indices: left.map((index) => places.get(index) as number) }];
  });
  return steps.sort((a, b) => (a.indices[0] as number) - (b.indices[0] as number));
}

function goesOn(entry: TraceEntry, since: number): boolean {
  if (entry.kind === "lost") return entry.at === since && entry.to !== entry.node;
  return entry.kind === "send" || entry.kind === "event" || entry.kind === "choice" || entry.kind === "view";
}
