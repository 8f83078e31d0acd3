/**
 * Puts the entries of several nodes in one order. Each node's own order is kept and no receipt comes before its sending;
 * within these bounds entries are ordered by time, and equal times as they came. Faults are noted by those who did them,
 * later than what the node itself says of the same time: they stand between its steps where their time is.
 */
import type { NodeId } from "../core/protocol.ts";
import type { MessageId, TraceEntry } from "./entry.ts";

/** The indices of the entries, in order. What is in order already stays as it is. */
export function orderOf(entries: readonly TraceEntry[]): number[] {
  return isInOrder(entries) ? entries.map((_, index) => index) : merged(entries);
}

function isInOrder(entries: readonly TraceEntry[]): boolean {
  const early = new Set<MessageId>();
  let latest = Number.NEGATIVE_INFINITY;
  return entries.every((entry) => {
    if (entry.kind === "receive") early.add(entry.id);
    const holds = entry.at >= latest && !(entry.kind === "send" && early.has(entry.id));
    latest = entry.at;
    return holds;
  });
}

interface Lane {
  readonly indices: number[];
  next: number;
}

/** A merge of one lane per node. A lane whose next entry is a receipt waits for the lane that has the sending. */
function merged(entries: readonly TraceEntry[]): number[] {
  const unsent = new Set(entries.flatMap((entry) => (entry.kind === "send" ? [entry.id] : [])));
  const ready: Lane[] = [];
  const waiting = new Map<MessageId, Lane[]>();
  const order: number[] = [];
  const headOf = ({ indices, next }: Lane): number => indices[next] as number;
  const isBefore = (a: number, b: number): boolean => {
    const [first, second] = [entries[a]?.at ?? 0, entries[b]?.at ?? 0];
    return first < second || (first === second && a < b);
  };

  function admit(lane: Lane): void {
    if (lane.next === lane.indices.length) return;
    const head = headOf(lane);
    const entry = entries[head];
    if (entry?.kind === "receive" && unsent.has(entry.id))
      return void waiting.set(entry.id, [...(waiting.get(entry.id) ?? []), lane]);
    const place = ready.findLastIndex((other) => isBefore(headOf(other), head));
    ready.splice(place + 1, 0, lane);
  }

  for (const lane of lanesOf(entries)) admit(lane);
  while (order.length < entries.length) {
    const lane = ready.shift();
    if (lane === undefined) {
      // Messages that wait for each other in a circle: no run has them, so any of them may go first.
      const [id] = waiting.keys().next().value === undefined ? [] : [waiting.keys().next().value as MessageId];
      if (id === undefined) break;
      release(id);
      continue;
    }
    const head = headOf(lane);
    order.push(head);
    lane.next += 1;
    const entry = entries[head];
    if (entry?.kind === "send") release(entry.id);
    admit(lane);
  }
  return order;

  function release(id: MessageId): void {
    unsent.delete(id);
    const lanes = waiting.get(id) ?? [];
    waiting.delete(id);
    for (const lane of lanes) admit(lane);
  }
}

function lanesOf(entries: readonly TraceEntry[]): Lane[] {
  const lanes = new Map<NodeId, Lane>();
  for (const [index, { node }] of entries.entries()) {
    const lane = lanes.get(node) ?? { indices: [], next: 0 };
    lanes.set(node, lane);
    lane.indices.splice(placeIn(lane.indices, index, entries), 0, index);
  }
  return [...lanes.values()];
}

/** Where the next entry of a node stands among those before it. */
function placeIn(indices: readonly number[], index: number, entries: readonly TraceEntry[]): number {
  const { kind, at } = entries[index] as TraceEntry;
  if (kind !== "fault") return indices.length;
  let place = indices.length;
  const before = (): TraceEntry | undefined => entries[indices[place - 1] ?? -1];
  while ((before()?.at ?? at) > at) place--;
  while (WITHIN_STEPS.has(entries[indices[place] ?? -1]?.kind ?? "start")) place++;
  return place;
}

const WITHIN_STEPS: ReadonlySet<TraceEntry["kind"]> = new Set(["send", "lost", "event", "choice", "view"]);
