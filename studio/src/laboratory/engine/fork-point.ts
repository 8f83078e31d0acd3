/** Computes the state at which a run is forked, and the effect of the act. */
import { UsageError } from "../../../../src/core/errors.ts";
import { type RecordedPoint, snapshotFrom } from "../../../../src/experiment/recording.ts";
import type { Scenario } from "../../../../src/experiment/scenario/schema.ts";
import { protocolNamed } from "../../../../src/protocols/index.ts";
import type { Draws } from "../../../../src/sim/draws.ts";
import type { TraceEntry } from "../../../../src/trace/entry.ts";
import type { Trace } from "../../../../src/trace/file.ts";
import type { Fork } from "./recipe.ts";

type Step = Scenario["steps"][number];
type Snapshot = RecordedPoint["snapshot"];
type Flying = Snapshot["inFlight"][number];

/** The delay, in milliseconds, of a message that a user delays and of messages on a slow link. */
const LATE_MS = 100;

interface Done {
  /** The initial state of the fork. The next field contains the steps to take. */
  readonly snapshot: Snapshot;
  readonly steps: readonly Step[];
  /** The entries that report the act. */
  readonly entries: readonly TraceEntry[];
  /** A sentence that explains why the act has no effect. Empty if it has one. */
  readonly problem: string;
}

interface Standing {
  /** The time of the fork, on the trace's clock. */
  readonly until: number;
  readonly paused: readonly number[];
  /** Earlier acts on the run. */
  readonly earlier: readonly Fork[];
  /** The random draws of the run. Null if they are unknown. */
  readonly draws: Draws | null;
  /** Nodes that start at this time, before the act. */
  readonly beginning: readonly number[];
}

/**
 * Returns the state at a fork, after its act.
 * @throws UsageError if the states are unknown there, or if the run does not have the node
 */
export function forkedAt(
  trace: Trace,
  fork: Fork,
  { until, paused, earlier, draws, beginning }: Standing,
): { readonly point: RecordedPoint; readonly done: Done } {
  const point = snapshotFrom(trace, "this run", { entries: fork.entries });
  const later = trace.entries.slice(fork.entries);
  const fired = earlier.filter(({ act, node, entries }) => {
    const since = trace.entries.slice(entries, fork.entries);
    return act === "timer" && !since.some((entry) => entry.node === node && entry.kind !== "pause");
  });
  const drawn = { draws, until, entries: fork.entries };
  const nodes = running(point.snapshot.nodes, later, drawn);
  const snapshot = {
    ...point.snapshot,
    nodes: fired.reduce((all, { node, what }) => ringing(all, node, what), nodes),
    // In a counterexample, times are moves rather than milliseconds.
    inFlight:
      trace.header.madeBy === "checker"
        ? point.snapshot.inFlight
        : arriving(point.snapshot.inFlight, later, { ...drawn, paused }).concat(
            doomed(point.snapshot.inFlight, trace.entries, { until, entries: fork.entries }),
          ),
  };
  return { point, done: doneTo(snapshot, fork, trace.header, { until, paused, beginning }) };
}

interface Drawn extends Pick<Standing, "draws" | "until"> {
  readonly entries: number;
}

/**
 * Returns the nodes with remaining times chosen so that timers expire, and busy nodes become free, at the same times as
 * in the original run.
 */
function running(
  nodes: Snapshot["nodes"],
  later: readonly TraceEntry[],
  { draws, until, entries }: Drawn,
): Snapshot["nodes"] {
  const order = new Map<string, number>();
  for (const [place, entry] of later.entries()) {
    if (entry.kind !== "timeout") continue;
    const key = `${entry.node} ${entry.timer}`;
    if (!order.has(key)) order.set(key, place);
  }
  return nodes.map((each) => {
    const timers = each.timers.map(({ timer, remainingMs }) => {
      const due = draws?.dueAfter(`timer ${each.id} ${timer}`, entries).at(-1);
      const place = order.get(`${each.id} ${timer}`);
      return {
        timer,
        remainingMs: due === undefined ? remainingMs : Math.max(0, due - until),
        ...(place === undefined ? {} : { order: place }),
      };
    });
    const done = draws?.dueAfter(`work ${each.id}`, entries).at(-1) ?? until;
    return { ...each, timers, ...(done > until ? { busyMs: done - until } : {}) };
  });
}

/**
 * Returns the messages in transit with delays chosen so that they arrive at the same times as in the original run.
 * Receipts by paused nodes are ignored, because they happen later than the arrival.
 */
function arriving(
  inFlight: Snapshot["inFlight"],
  later: readonly TraceEntry[],
  { until, paused, draws, entries }: Drawn & Pick<Standing, "paused">,
): Flying[] {
  const arrivals = new Map<string, { readonly at: number; readonly order: number }[]>();
  for (const [order, entry] of later.entries()) {
    const isArrival = entry.kind === "receive" || (entry.kind === "lost" && entry.why === "crashed");
    if (!isArrival || paused.includes(entry.node)) continue;
    const known = arrivals.get(entry.id) ?? [];
    arrivals.set(entry.id, [...known, { at: entry.at, order }]);
  }
  return inFlight.map((message, place) => {
    const { id } = message;
    // The copies of a duplicated message are in the order they arrive.
    const left = inFlight.slice(place).filter((each) => each.id === id).length;
    const due = draws?.dueAfter(`message ${id}`, entries).toSorted((a, b) => a - b) ?? [];
    const arrival = arrivals.get(id)?.shift();
    const at = due.at(-left) ?? arrival?.at;
    return {
      ...message,
      ...(at === undefined ? {} : { delayMs: Math.max(0, at - until) }),
      ...(arrival === undefined ? {} : { order: arrival.order }),
    };
  });
}

/** Returns the messages in transit to a node that has crashed since they were sent. */
function doomed(
  inFlight: Snapshot["inFlight"],
  all: readonly TraceEntry[],
  { until, entries }: Pick<Drawn, "until" | "entries">,
): Flying[] {
  const alive = new Set(inFlight.map(({ id }) => id));
  const sent = new Map(all.slice(0, entries).flatMap((entry) => (entry.kind === "send" ? [[entry.id, entry]] : [])));
  return all.slice(entries).flatMap((entry, order): Flying[] => {
    if (entry.kind !== "lost" || entry.why !== "crashed" || alive.has(entry.id)) return [];
    const { id, to, at } = entry;
    const sending = sent.get(id);
    if (sending === undefined) return [];
    const { node: from } = sending;
    const message = sending.message as Flying["message"];
    return [{ id, from, to, message, delayMs: Math.max(0, at - until), isDoomed: true, order }];
  });
}

function doneTo(
  snapshot: Snapshot,
  { act, node, what }: Fork,
  { protocol, nodes }: Trace["header"],
  { until: at, ...standing }: Pick<Standing, "until" | "paused" | "beginning">,
): Done {
  const { inFlight } = snapshot;
  const other = Number(what);
  if (!nodes.includes(node) || ((act === "cut" || act === "slow") && !nodes.includes(other)))
    throw new UsageError("bad-argument", `expected nodes of the run in ${act}, got ${node} ${what}`);
  const problem = impossible(snapshot, { act, node, what }, standing);
  if (problem !== "") return { snapshot, steps: [], entries: [], problem };
  const steps = (...own: Step[]): Done => ({ snapshot, steps: own, entries: [], problem });
  /** The index of the message, or of its first copy if it was duplicated. */
  const place = inFlight.findIndex(({ id }) => id === what);
  const flying = (changed: (message: Flying) => readonly Flying[], ...entries: TraceEntry[]): Done => ({
    snapshot: { ...snapshot, inFlight: inFlight.flatMap((each, index) => (index === place ? changed(each) : [each])) },
    steps: [],
    entries,
    problem,
  });
  switch (act) {
    case "crash":
      return steps({ crash: [node] });
    case "start":
      return steps({ start: [node] });
    case "pause":
      return steps({ pause: [node] });
    case "resume":
      return steps({ resume: [node] });
    case "command": {
      const command = protocolNamed(protocol).family.ask(node, 1);
      return command === null ? steps() : steps({ command: { node: [node], command } });
    }
    case "timer":
      return { ...steps(), snapshot: { ...snapshot, nodes: ringing(snapshot.nodes, node, what) } };
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

/**
 * Returns why an act is impossible, or an empty string if it is possible. A link contains an impossible act if the link
 * was written by hand or if an earlier act was undone.
 */
function impossible(
  { nodes, inFlight }: Snapshot,
  { act, node, what }: Omit<Fork, "entries">,
  { paused, beginning }: Pick<Standing, "paused" | "beginning">,
): string {
  const own = nodes.find(({ id }) => id === node);
  const isDown = (own?.state ?? null) === null && !beginning.includes(node);
  const isPaused = paused.includes(node);
  const down = isDown ? `node ${node} is down at that step` : "";
  switch (act) {
    case "crash":
    case "command":
      return down;
    case "start":
      return isDown ? "" : `node ${node} is not down at that step`;
    case "pause":
      return down || (isPaused ? `node ${node} is already paused at that step` : "");
    case "resume":
      return isPaused ? "" : `node ${node} is not paused at that step`;
    case "timer":
      return (
        down ||
        (own?.timers.some(({ timer }) => timer === what) ? "" : `node ${node} has no timer “${what}” at that step`)
      );
    case "lose":
    case "duplicate":
    case "delay":
      return inFlight.some(({ id }) => id === what) ? "" : `no message “${what}” is in transit at that step`;
    case "cut":
    case "slow":
      return Number(what) === node ? `a link has two ends, and both are node ${node}` : "";
    default:
      return "";
  }
}

/** Makes one of a node's timers expire immediately. */
const ringing = (nodes: Snapshot["nodes"], node: number, name: string): Snapshot["nodes"] =>
  nodes.map((each) => {
    if (each.id !== node) return each;
    const timers = each.timers.map((timer) => (timer.timer === name ? { ...timer, remainingMs: 0 } : timer));
    return { ...each, timers };
  });
