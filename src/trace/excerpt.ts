/** Excerpts of a trace: a time window, a subset of the nodes, or a trace without hidden entries. */
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import type { MessageId, TraceEntry, TraceHeader } from "./entry.ts";
import type { Trace } from "./file.ts";
import { type Name, nameOf, nameOfWord } from "./log.ts";
import { type Standing, type Standings, standingAfter, standingsBefore } from "./standing.ts";
import { type Step, stepsAmong } from "./steps.ts";

export interface Excerpt extends Trace {
  /** Each node's standing before the first entry. */
  readonly before: Standings;
  /** The steps of the whole trace that have entries in the excerpt. The first entry of such a step may be missing. */
  readonly steps: readonly Step[];
  /** The time treated as 0: the start of a simulation, or the first entry of a recording. */
  readonly origin: number;
}

export interface Selection {
  /** The first and last time, both inclusive, in milliseconds since the origin. */
  readonly from?: number;
  readonly to?: number;
  readonly nodes?: readonly NodeId[];
  /** The short or full names of messages, timers and events to leave out. */
  readonly hide?: readonly string[];
}

/**
 * Selects a part of a trace.
 * @throws UsageError if a node, name or time does not occur in the trace
 */
export function excerptOf({ header, entries, clocks }: Trace, selection: Selection = {}): Excerpt {
  const nodes = new Set(chosenNodes(header, selection.nodes));
  const origin = originOf(header, entries);
  const isBefore = ({ at }: TraceEntry): boolean => at - origin < (selection.from ?? Number.NEGATIVE_INFINITY);
  const isAfter = ({ at }: TraceEntry): boolean => at - origin > (selection.to ?? Number.POSITIVE_INFINITY);
  requireSense(selection, entries, origin);
  const isHidden = hiddenBy(selection.hide ?? []);
  const before = new Map<NodeId, Standing>(standingsBefore(header.nodes, entries));
  const kept: number[] = [];
  let begun = false;
  for (const [index, entry] of entries.entries()) {
    // The clocks of processes differ slightly, so an entry from before the window can follow the first entry in it.
    begun ||= !isBefore(entry);
    const concernsOthers = otherEnd(entry) !== null && !nodes.has(otherEnd(entry) as NodeId);
    if (!begun) before.set(entry.node, standingAfter(before.get(entry.node) as Standing, entry));
    else if (!isAfter(entry) && nodes.has(entry.node) && !concernsOthers && !isHidden(entry)) kept.push(index);
  }
  return {
    header: { ...header, nodes: header.nodes.filter((node) => nodes.has(node)), violation: moved(header, kept) },
    entries: kept.map((index) => entries[index] as TraceEntry),
    clocks: kept.map((index) => clocks[index] ?? {}),
    before: new Map([...before].filter(([node]) => nodes.has(node))),
    steps: stepsAmong(entries, kept),
    origin,
  };
}

export function beginningOf(excerpt: Excerpt, count: number): Excerpt {
  const { entries, clocks, steps } = excerpt;
  if (entries.length <= count) return excerpt;
  const begun = steps.flatMap((step) => {
    const indices = step.indices.filter((index) => index < count);
    return indices.length === 0 ? [] : [{ ...step, indices }];
  });
  return { ...excerpt, entries: entries.slice(0, count), clocks: clocks.slice(0, count), steps: begun };
}

/**
 * Rejects selections that make no sense. A misspelled name would not hide anything, and a window outside the run would
 * not show anything.
 */
function requireSense({ from, to, hide = [] }: Selection, entries: readonly TraceEntry[], origin: number): void {
  const refuse = (what: string, expected: string, got: unknown): never => {
    throw new UsageError("bad-selection", unexpected(what, expected, got));
  };
  const names = new Set(entries.flatMap((entry) => (hide.length === 0 ? [] : namesIn(entry))));
  const stray = hide.find((name) => !names.has(name));
  if (stray !== undefined)
    refuse("the hidden type", `a message, timer or event of the trace: ${[...names].join(", ")}`, stray);
  const times = entries.map(({ at }) => at - origin);
  const [first, last] = [Math.min, Math.max].map((least) => times.reduce((a, b) => least(a, b), times[0] ?? 0)) as [
    number,
    number,
  ];
  if (from !== undefined && from > last) refuse("the beginning", `at most ${last} ms, the end of the trace`, from);
  if (to !== undefined && to < first) refuse("the end", `at least ${first} ms, when the trace begins`, to);
}

/** Returns the short name and the full name. Empty if the entry does not have a name from the protocol. */
function namesIn(entry: TraceEntry): string[] {
  const name = nameIn(entry);
  return name === null ? [] : [name.short, name.full];
}

function nameIn(entry: TraceEntry): Name | null {
  switch (entry.kind) {
    case "timeout":
      return nameOfWord(entry.timer);
    case "send":
    case "receive":
      return nameOf(entry.message);
    case "event":
      return nameOf(entry.event);
    default:
      return null;
  }
}

/** Returns the time treated as 0. */
export function originOf(header: TraceHeader, entries: readonly TraceEntry[]): number {
  return header.madeBy === "cluster" ? (entries[0]?.at ?? 0) : 0;
}

function chosenNodes({ nodes }: TraceHeader, chosen: readonly NodeId[] | undefined): readonly NodeId[] {
  const stranger = chosen?.find((node) => !nodes.includes(node));
  if (stranger !== undefined)
    throw new UsageError("unknown-node", unexpected("the node", `one of ${nodes.join(", ")}`, stranger));
  return chosen ?? nodes;
}

const otherEnd = (entry: TraceEntry): NodeId | null =>
  entry.kind === "send" || entry.kind === "lost" ? entry.to : entry.kind === "receive" ? entry.from : null;

function hiddenBy(names: readonly string[]): (entry: TraceEntry) => boolean {
  const hidden = new Set(names);
  const ids = new Set<MessageId>();
  return (entry) => {
    if (entry.kind === "lost") return ids.has(entry.id);
    const isOut = namesIn(entry).some((name) => hidden.has(name));
    if (isOut && (entry.kind === "send" || entry.kind === "receive")) ids.add(entry.id);
    return isOut;
  };
}

/** Returns the violation, with the start of the repeated part moved to the first entry that was kept. */
function moved({ violation }: TraceHeader, kept: readonly number[]): TraceHeader["violation"] {
  if (violation === null || violation.loopFrom === null) return violation;
  const { loopFrom } = violation;
  const first = kept.findIndex((index) => index >= loopFrom);
  return { ...violation, loopFrom: first === -1 ? null : first };
}
