/** How everything stands where a run is forked, and what is done to it there. */
import { UsageError } from "../../../../src/core/errors.ts";
import { type RecordedPoint, snapshotFrom } from "../../../../src/experiment/recording.ts";
import type { Scenario } from "../../../../src/experiment/scenario/schema.ts";
import { protocolNamed } from "../../../../src/protocols/index.ts";
import type { TraceEntry } from "../../../../src/trace/entry.ts";
import type { Trace } from "../../../../src/trace/file.ts";
import type { Fork } from "./recipe.ts";

type Step = Scenario["steps"][number];
type Snapshot = RecordedPoint["snapshot"];
type Flying = Snapshot["inFlight"][number];

/** How late a message comes that is delayed by hand, and each on a slow link, in milliseconds. */
const LATE_MS = 100;

interface Done {
  /** What to begin with, and what to do then. */
  readonly snapshot: Snapshot;
  readonly steps: readonly Step[];
  /** What is told of it. */
  readonly entries: readonly TraceEntry[];
}

interface Standing {
  /** The moment, in the time of the trace. */
  readonly until: number;
  readonly paused: readonly number[];
  /** What was done to the run before. */
  readonly earlier: readonly Fork[];
}

/** @throws UsageError where states are not known there, and for nodes that the run does not have */
export function forkedAt(
  trace: Trace,
  fork: Fork,
  { until, paused, earlier }: Standing,
): { readonly point: RecordedPoint; readonly done: Done } {
  const point = snapshotFrom(trace, "this run", { entries: fork.entries });
  const later = trace.entries.slice(fork.entries);
  const fired = earlier.filter(({ act, node, entries }) => {
    const since = trace.entries.slice(entries, fork.entries);
    return act === "timer" && !since.some((entry) => entry.node === node && entry.kind !== "pause");
  });
  const snapshot = {
    ...point.snapshot,
    nodes: fired.reduce((nodes, { node, what }) => ringing(nodes, node, what), point.snapshot.nodes),
    // Moves of the checker are no milliseconds.
    inFlight:
      trace.header.madeBy === "checker"
        ? point.snapshot.inFlight
        : arriving(point.snapshot.inFlight, later, { until, paused }),
  };
  return { point, done: doneTo(snapshot, fork, trace.header, until) };
}

/** Each message comes when it came in the run that is left; what a paused node received, it received later than it came. */
function arriving(
  inFlight: Snapshot["inFlight"],
  later: readonly TraceEntry[],
  { until, paused }: Pick<Standing, "until" | "paused">,
): Flying[] {
  const arrivals = new Map<string, number[]>();
  for (const entry of later) {
    if (entry.kind !== "receive" || paused.includes(entry.node)) continue;
    const known = arrivals.get(entry.id) ?? [];
    arrivals.set(entry.id, [...known, entry.at]);
  }
  return inFlight.map((message) => {
    const at = arrivals.get(message.id)?.shift();
    return at === undefined ? message : { ...message, delayMs: Math.max(0, at - until) };
  });
}

function doneTo(snapshot: Snapshot, { act, node, what }: Fork, { protocol, nodes }: Trace["header"], at: number): Done {
  const { inFlight } = snapshot;
  const other = Number(what);
  if (!nodes.includes(node) || ((act === "cut" || act === "slow") && !nodes.includes(other)))
    throw new UsageError("bad-argument", `expected nodes of the run in ${act}, got ${node} ${what}`);
  const steps = (...own: Step[]): Done => ({ snapshot, steps: own, entries: [] });
  /** Of a message and its double, the one that comes first. */
  const place = inFlight.findIndex(({ id }) => id === what);
  const flying = (changed: (message: Flying) => readonly Flying[], ...entries: TraceEntry[]): Done => ({
    snapshot: { ...snapshot, inFlight: inFlight.flatMap((each, index) => (index === place ? changed(each) : [each])) },
    steps: [],
    entries: place === -1 ? [] : entries,
  });
  switch (act) {
    case "crash":
      return steps({ crash: [node] });
    case "start":
      return snapshot.nodes.some(({ id, state }) => id === node && state !== null) ? steps() : steps({ start: [node] });
    case "pause":
      return steps({ pause: [node] });
    case "resume":
      return steps({ resume: [node] });
    case "command": {
      const command = protocolNamed(protocol).family.ask(node, 1);
      return command === null ? steps() : steps({ command: { node: [node], command } });
    }
    case "timer":
      return { snapshot: { ...snapshot, nodes: ringing(snapshot.nodes, node, what) }, steps: [], entries: [] };
    case "lose": {
      const from = inFlight[place]?.from ?? node;
      return flying(() => [], { at, node: from, kind: "lost", id: what, to: node, why: "dropped" });
    }
    case "duplicate":
      return flying((each) => {
        const { delayMs: _own, ...double } = each;
        return [each, double];
      });
    case "delay":
      return flying((each) => [{ ...each, delayMs: LATE_MS }]);
    case "cut":
      return steps({ cut: { from: [node], to: [other] } }, { cut: { from: [other], to: [node] } });
    case "isolate":
      return steps({ partition: [[node], nodes.filter((each) => each !== node)] });
    case "slow":
      return steps(
        { link: { from: [node], to: [other], delayMs: LATE_MS } },
        { link: { from: [other], to: [node], delayMs: LATE_MS } },
      );
    case "heal":
      return steps({ heal: "all" });
  }
}

/** The timer runs out now. */
const ringing = (nodes: Snapshot["nodes"], node: number, name: string): Snapshot["nodes"] =>
  nodes.map((each) => {
    if (each.id !== node) return each;
    const timers = each.timers.map((timer) => (timer.timer === name ? { ...timer, remainingMs: 0 } : timer));
    return { ...each, timers };
  });
