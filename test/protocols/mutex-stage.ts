/**
 * Helpers for tests of mutual exclusion: nodes with workloads, the times of their requests and entries, and
 * explorations.
 */
import fc from "fast-check";
import { expect } from "vitest";
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
  readonly entries: readonly TraceEntry<MutexWithWorkload<M>>[];
  story(): string;
  /** Returns the nodes with such an event and its time, in chronological order. */
  moments(what: "needed" | "entered" | "exited"): { node: NodeId; at: number }[];
}

interface StageOptions {
  readonly delayMs?: number | readonly [number, number];
  readonly seed?: number;
  readonly stayMs?: number;
}

/** Starts idle nodes, each with a workload. */
export function stage<M extends Mutex>(
  mutex: Protocol<M>,
  nodes: readonly NodeId[],
  { delayMs = MESSAGE_MS, seed = 1, stayMs = STAY_MS }: StageOptions = {},
): Stage<M> {
  const entries: TraceEntry<MutexWithWorkload<M>>[] = [];
  const sim = simulation<MutexWithWorkload<M>>({
    protocol: mutexWithWorkload(() => mutex, { workload: { stayMs } }),
    nodes,
    seed,
    delayMs,
    trace: (entry) => entries.push(entry),
  });
  for (const node of nodes) sim.wake(node);
  entries.length = 0;
  return {
    sim,
    entries,
    story: () => entries.map((entry) => `${logLine(entry as TraceEntry)}\n`).join(""),
    moments: (what) =>
      entries.flatMap((entry) => {
        const said = entry.kind === "event" ? (entry.event as { body?: { type: string } }).body?.type : undefined;
        return said === what ? [{ node: entry.node, at: entry.at }] : [];
      }),
  };
}

/**
 * Checks random workloads and delays: all properties hold at the end, and every request has been granted.
 *
 * @param untilMs the end of runs that do not end by themselves
 * @param also an additional check at the end of a run
 */
export function expectEverybodyServed<M extends Mutex>(
  nodes: number,
  staged: (links: { delayMs: readonly [number, number]; seed: number }) => Stage<M>,
  { numRuns = 100, untilMs, also }: { numRuns?: number; untilMs?: number; also?: (stage: Stage<M>) => void } = {},
): void {
  const demand = fc.record({ node: fc.nat(nodes - 1), at: fc.nat(200), entries: fc.integer({ min: 1, max: 3 }) });
  const demands = fc.array(demand, { maxLength: untilMs === undefined ? 10 : 6 });
  fc.assert(
    fc.property(fc.nat(), demands, (seed, wanted) => {
      const group = staged({ delayMs: [1, 40], seed });
      for (const { node, at, entries } of wanted.toSorted((a, b) => a.at - b.at)) {
        group.sim.run(at);
        group.sim.command(node, use(entries));
      }
      if (untilMs === undefined) group.sim.run();
      else group.sim.run(untilMs);
      expect(group.sim.verdict()).toEqual([]);
      expect(group.moments("entered")).toHaveLength(wanted.reduce((sum, { entries }) => sum + entries, 0));
      also?.(group);
    }),
    { numRuns },
  );
}

/** Explores runs where every node uses the critical section this many times, at any time, over FIFO links. */
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

/** A context without methods. A handler that uses one throws. */
export const silent = { self: 0, peers: [] } as never;

/** Returns the protocol with only the property of that name, so that a search finds only its violations. */
export function about<M extends Mutex>(
  mutex: Protocol<M>,
  name: string,
): { properties: Property<MutexWithWorkload<M>>[] } {
  return { properties: mutexWithWorkload(() => mutex).properties.filter((property) => property.name === name) };
}

/**
 * Returns the property that breaks among 3 nodes that enter once each, and the shortest run that shows it, one move per
 * line.
 */
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
