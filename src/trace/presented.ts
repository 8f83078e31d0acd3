/**
 * Prepares a trace for display: rows are in order, messages have only their important fields, and repetitive periodic
 * messages are left out. A periodic message is kept if it changes something, such as a heartbeat that makes a node a
 * follower.
 */
import type { NodeId, Tagged } from "../core/protocol.ts";
import { rewrapped, unwrapped } from "../core/wrapping.ts";
import type { MessageId, TraceEntry } from "./entry.ts";
import type { Trace } from "./file.ts";
import { nameOf, nameOfWord } from "./log.ts";
import { flightsOf, type Step, stepsOf } from "./steps.ts";

/** An algorithm's rules for display. */
export interface Showing {
  readonly rows: readonly NodeId[];
  /** The fields that appear on a message's arrow, keyed by the message's short name. */
  readonly labels: Readonly<Record<string, readonly string[]>>;
  /** The short names of periodic messages, timers and events. */
  readonly periodic: readonly string[];
}

export interface Presented extends Trace {
  /** The original index of each entry that was kept. */
  readonly kept: readonly number[];
}

const MAX_LABELS = 2;
const MAX_LABEL = 14;

/** Applies the rules to a trace. */
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

/** Returns the entry with only those fields of its message or event that are shown. */
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

/** Returns the message with only the fields that appear on its arrow. */
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

/** Returns the indexes of entries that can be hidden without losing information. */
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

/** Whether an entry is meaningless on its own. Such an entry can be hidden if the rest of its step is. */
const isAside = ({ kind }: TraceEntry): boolean => kind === "timeout" || kind === "event";

/** Whether an event reports the absence of something, such as a leader. */
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
