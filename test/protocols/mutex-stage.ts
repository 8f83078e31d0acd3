/** What tests of mutual exclusion share: nodes with workloads, when each of them asked and entered, and explorations. */
import { type Exploration, type ExploreOptions, explore } from "../../src/check/explore.ts";
import type { NodeId, Property, Protocol } from "../../src/core/protocol.ts";
import { type Mutex, type MutexWithWorkload, mutexWithWorkload } from "../../src/protocols/mutex/family/workload.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";
import type { TraceEntry } from "../../src/trace/entry.ts";
import { logLine } from "../../src/trace/log.ts";
import { reaching } from "./reached.ts";
import { range } from "./sizes.ts";

export const MESSAGE_MS = 10;
export const STAY_MS = 30;

export const use = (entries: number) => ({ type: "workload" as const, body: { type: "use" as const, entries } });

export interface Stage<M extends Mutex> {
  readonly sim: Simulation<MutexWithWorkload<M>>;
  story(): string;
  /** Who did so, in the order of time. */
  moments(what: "needed" | "entered" | "exited"): { node: NodeId; at: number }[];
}

/** Nodes that have been running idly, each with a workload. */
export function stage<M extends Mutex>(
  mutex: Protocol<M>,
  nodes: readonly NodeId[],
  { delayMs = MESSAGE_MS, seed = 1 }: { delayMs?: number | readonly [number, number]; seed?: number } = {},
): Stage<M> {
  const entries: TraceEntry[] = [];
  const sim = simulation<MutexWithWorkload<M>>({
    protocol: mutexWithWorkload(() => mutex, { workload: { stayMs: STAY_MS } }),
    nodes,
    seed,
    delayMs,
    trace: (entry) => entries.push(entry),
  });
  for (const node of nodes) sim.wake(node);
  entries.length = 0;
  return {
    sim,
    story: () => entries.map((entry) => `${logLine(entry)}\n`).join(""),
    moments: (what) =>
      entries.flatMap((entry) => {
        const said = entry.kind === "event" ? (entry.event as { body?: { type: string } }).body?.type : undefined;
        return said === what ? [{ node: entry.node, at: entry.at }] : [];
      }),
  };
}

/** Every node uses the section so many times, or as many as is said for it, whenever it likes, over FIFO links. */
export function exploreUses<M extends Mutex>(
  mutex: Protocol<M>,
  nodes: number,
  entries: number | readonly number[],
  options: Partial<ExploreOptions<MutexWithWorkload<M>>> = {},
): Exploration<MutexWithWorkload<M>> {
  return reaching(
    explore<MutexWithWorkload<M>>({
      protocol: mutexWithWorkload(() => mutex),
      nodes: range(0, nodes - 1),
      network: "fifo",
      timers: "free",
      begin: "idle",
      commands: ({ workload }, node) =>
        workload.doing === "idle" && workload.entries === 0
          ? [use(typeof entries === "number" ? entries : (entries[node] ?? 0))]
          : [],
      ...options,
    }),
    "entered",
  );
}

/** Whatever a handler did with it would throw. */
export const silent = { self: 0, peers: [] } as never;

/** The one property of that name, with which a search looks for its violation alone. */
export function about<M extends Mutex>(
  mutex: Protocol<M>,
  name: string,
): { properties: Property<MutexWithWorkload<M>>[] } {
  return { properties: mutexWithWorkload(() => mutex).properties.filter((property) => property.name === name) };
}

/** What breaks among 3 nodes that enter once each, and the shortest run that shows it, a move each. */
export function shortestViolation<M extends Mutex>(
  mutex: Protocol<M>,
  options: Partial<ExploreOptions<MutexWithWorkload<M>>>,
): [property: string | undefined, moves: string[]] {
  const { property, path } = exploreUses(mutex, 3, 1, options);
  return [
    property?.name,
    path.map(({ move }) =>
      move.kind === "receive" || move.kind === "lose"
        ? `${move.node} ${move.kind} ${move.message.body.type} from ${move.from}`
        : `${move.node} ${move.kind}`,
    ),
  ];
}
