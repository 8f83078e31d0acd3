/**
 * A trace for display: rows in order, messages with their important fields, and without repetitive periodic messages. A
 * periodic message is kept if it changes something, such as the heartbeat that makes a node a follower.
 */
import type { NodeId, Tagged } from "../core/protocol.ts";
import { rewrapped, unwrapped } from "../core/wrapping.ts";
import type { MessageId, TraceEntry } from "./entry.ts";
import type { Trace } from "./file.ts";
import { nameOf, nameOfWord } from "./log.ts";
import { flightsOf, type Step, stepsOf } from "./steps.ts";

export interface Showing {
  readonly rows: readonly NodeId[];
  /** The fields that label the arrow of a message, by the message's short name. */
  readonly labels: Readonly<Record<string, readonly string[]>>;
  /** Short names of messages, timers and events. */
  readonly periodic: readonly string[];
}

export interface Presented extends Trace {
  /** The original index of each entry that is kept. */
  readonly kept: readonly number[];
}

const MAX_LABELS = 2;
const MAX_LABEL = 14;

export function presented({ header, entries, clocks }: Trace, { rows, labels, periodic }: Showing): Presented {
  const folded = foldedIn(entries, new Set(periodic));
  const kept = entries.flatMap((_entry, index) => (folded.has(index) ? [] : [index]));
  const { violation } = header;
  const loopFrom = violation?.loopFrom == null ? null : kept.findIndex((index) => index >= (violation.loopFrom ?? 0));
  return {
    header: {
      ...header,
      nodes: rows,
      violation: violation === null ? null : { ...violation, loopFrom: loopFrom === -1 ? null : loopFrom },
    },
    entries: kept.map((index) => labelled(entries[index] as TraceEntry, labels)),
    clocks: kept.map((index) => clocks[index] ?? {}),
    kept,
  };
}

/** The entry with only those fields of its message or event that label it. */
function labelled(entry: TraceEntry, labels: Showing["labels"]): TraceEntry {
  switch (entry.kind) {
    case "send":
    case "receive":
      return { ...entry, message: messageShown(entry.message, labels) };
    case "event":
      return { ...entry, event: withFields(entry.event, labels, 1) };
    default:
      return entry;
  }
}

/** The message with only the fields that label its arrow. */
export const messageShown = (message: Tagged, labels: Showing["labels"]): Tagged =>
  withFields(message, labels, MAX_LABELS);

function withFields(said: Tagged, labels: Showing["labels"], most: number): Tagged {
  const { type, ...fields } = unwrapped(said);
  const short = Object.keys(fields).filter((name) => isShort(fields[name]));
  const declared = Object.hasOwn(labels, type) ? labels[type] : undefined;
  const names = declared ?? ("id" in fields ? ["id"] : short.slice(0, most));
  const shown = names.filter((name) => name in fields).map((name) => [name, fields[name]]);
  return rewrapped(said, { type, ...Object.fromEntries(shown) });
}

function isShort(value: unknown): boolean {
  return (typeof value !== "object" || value === null) && String(value).length <= MAX_LABEL;
}

/** The indices of entries that can be hidden without loss. */
function foldedIn(entries: readonly TraceEntry[], periodic: ReadonlySet<string>): ReadonlySet<number> {
  if (periodic.size === 0) return new Set();
  const steps = stepsOf(entries);
  const stepOf = new Map(steps.flatMap((step) => step.indices.map((index) => [index, step] as const)));
  const isPeriodic = (index: number): boolean => isOneOf(entries[index] as TraceEntry, periodic);
  const isUneventful = (step: Step | undefined): boolean => step === undefined || step.indices.every(isPeriodic);
  const folded = new Set<number>();
  const dull = new Set<MessageId>();
  for (const { id, sent, ended, lost } of flightsOf(entries)) {
    const end = sent ?? ended ?? -1;
    if (!isPeriodic(end) || (lost === null && ended !== null && !isUneventful(stepOf.get(ended)))) continue;
    dull.add(id);
  }
  for (const [index, entry] of entries.entries())
    if ((entry.kind === "send" || entry.kind === "receive" || entry.kind === "lost") && dull.has(entry.id))
      folded.add(index);
  for (const [index, entry] of entries.entries()) if (isPeriodic(index) && saysNothing(entry)) folded.add(index);
  for (const { indices } of steps) {
    const left = indices.filter((index) => !folded.has(index));
    if (left.every((index) => isPeriodic(index) && isAside(entries[index] as TraceEntry)))
      for (const index of left) folded.add(index);
  }
  return folded;
}

/** Entries with no meaning of their own. They can be hidden if the rest of their step is. */
const isAside = ({ kind }: TraceEntry): boolean => kind === "timeout" || kind === "event";

/** An event that reports an absence, such as the lack of a leader. */
function saysNothing(entry: TraceEntry): boolean {
  if (entry.kind !== "event") return false;
  const { type: _type, ...fields } = unwrapped(entry.event);
  return Object.keys(fields).length > 0 && Object.values(fields).every((value) => value === null);
}

function isOneOf(entry: TraceEntry, periodic: ReadonlySet<string>): boolean {
  switch (entry.kind) {
    case "send":
    case "receive":
      return periodic.has(nameOf(entry.message).short);
    case "event":
      return periodic.has(nameOf(entry.event).short);
    case "timeout":
      return periodic.has(nameOfWord(entry.timer).short);
    default:
      return false;
  }
}
