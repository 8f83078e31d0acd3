/**
 * Groups the entries of a trace into steps. A step consists of an input that reached a node and everything it caused
 * there.
 */

import { advance, merge, type VectorClock } from "../core/clocks.ts";
import type { NodeId, Tagged } from "../core/protocol.ts";
import type { LossReason, MessageId, TraceEntry } from "./entry.ts";

/** One input to a node, and its effects. */
export interface Step {
  readonly at: number;
  readonly node: NodeId;
  /** Indexes into the trace, in ascending order. */
  readonly indices: readonly number[];
}

/** Returns the steps, in the order of their first entries. */
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
    // A loss may be noticed later, so it does not belong to the node's current step.
    if (entry.kind !== "lost") current.set(node, step);
  }
  return steps;
}

/**
 * Returns the steps that have at least one entry among `kept`, which must be in ascending order. The indexes in a step
 * are positions in `kept`. A step's entries stay together even if its first entry was not kept.
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

/** One transmission of a message. A duplicated message has several. */
export interface Flight {
  readonly id: MessageId;
  readonly from: NodeId;
  readonly to: NodeId;
  readonly message: Tagged;
  /** The index of the send entry. Null if the trace begins after the send. */
  readonly sent: number | null;
  /** The index of the receipt or loss. Null while the message is in flight. */
  readonly ended: number | null;
  readonly lost: LossReason | null;
}

/** Returns the flights, in the order of their first entries. Entries must be in order. */
export function flightsOf(entries: readonly TraceEntry[]): Flight[] {
  const flights: Flight[] = [];
  const places = new Map<MessageId, number>();
  for (const [index, entry] of entries.entries()) {
    if (entry.kind === "send") {
      const { id, node: from, to, message } = entry;
      places.set(id, flights.length);
      flights.push({ id, from, to, message, sent: index, ended: null, lost: null });
    } else if (entry.kind === "receive" || entry.kind === "lost") {
      const place = places.get(entry.id);
      const known = place === undefined ? undefined : flights[place];
      const lost = entry.kind === "lost" ? entry.why : null;
      if (place !== undefined && known !== undefined && known.ended === null)
        flights[place] = { ...known, ended: index, lost };
      else if (known !== undefined) flights.push({ ...known, ended: index, lost });
      else if (entry.kind === "receive") {
        const { id, from, node: to, message } = entry;
        places.set(id, flights.length);
        flights.push({ id, from, to, message, sent: null, ended: index, lost: null });
      }
    }
  }
  return flights;
}

/**
 * Returns the clock of each entry, in the order of the entries. One step of a node (a start, receipt, timeout or
 * command, and everything it caused there) counts as one event, so all entries in a step have the same clock.
 */
export function vectorClocks(entries: readonly TraceEntry[]): VectorClock[] {
  return entries.map(clockKeeper());
}

/**
 * Returns a function that computes the clock of each successive entry. A send must come before its receipt. The
 * function's memory grows with the number of nodes and of messages in flight or lost, not with the length of the trace.
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
      sent.delete(entry.id); // The receiver now knows this clock, so the receipt of another copy adds nothing.
    }
    // A recording may begin in the middle of a step.
    if (beginsStep(kind) || before === undefined) clock = advance(clock, node);
    if (kind === "send") sent.set(entry.id, clock);
    clocks.set(node, clock);
    return clock;
  };
}

/** Whether an entry of this kind begins a step. All other entries belong to their node's current step. */
export const beginsStep = (kind: TraceEntry["kind"]): boolean => BEGINS_STEP.has(kind);

const BEGINS_STEP: ReadonlySet<TraceEntry["kind"]> = new Set([
  ...(["start", "crash", "receive", "timeout", "command"] as const),
  ...(["pause", "resume", "fault"] as const),
]);
