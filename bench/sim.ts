/**
 * Measures how many messages per second the simulator processes: Chang–Roberts on a ring of 1,000 nodes in the worst
 * order, in alternating rounds with a bare loop written only for this algorithm (`bare-loop.ts`) and with SimPy, if it
 * is installed. Then measures the cost per message on rings of 100 to a million nodes.
 *
 *     npx coterie bench sim [--quick] [--json]
 */
import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import type { NodeId } from "../src/core/protocol.ts";
import { random } from "../src/core/random.ts";
import {
  type ExtendedChangRoberts,
  extendedChangRoberts,
} from "../src/protocols/election/chang-roberts/extended-chang-roberts.ts";
import type { SimulationOptions } from "../src/sim/options.ts";
import { simulation } from "../src/sim/simulation.ts";
import type { TraceEntry } from "../src/trace/entry.ts";
import { bareElection } from "./bare-loop.ts";
import { commandLine, progress } from "./command-line.ts";
import { inTurns, median, printTable, spread } from "./results.ts";
import { checkoutFile } from "./workers.ts";

const { values } = commandLine("sim", {
  quick: { help: "fewer rounds and messages" },
  json: { help: "the figures as JSON" },
});

const RING = 1_000;
const ROUNDS = values.quick ? 5 : 9;
/**
 * The size of the ring in the run that checks all properties after every step, which costs time proportional to the
 * number of nodes.
 */
const WATCHED_RING = 200;
const SIMPY_RING = values.quick ? 300 : 1_000;
const SCALES = [100, 1_000, 10_000, 100_000, 1_000_000];
/** Each row of the scaling table repeats its election until about this many messages have been sent. */
const MESSAGES = values.quick ? 300_000 : 3_000_000;
const DELAY_MS = 10;

interface Run {
  readonly messages: number;
  /** The time from the first call to the end. */
  readonly ms: number;
  /** CPU time, including garbage collection. This is affected least by other work on the machine. */
  readonly cpuMs: number;
  /** The time to create and wake the nodes. */
  readonly setUpMs: number;
}

type RingOrder = "descending" | "ascending" | "random";

/**
 * Returns the ids from 0, clockwise. Descending order is the worst case if all nodes start an election: N(N + 1)/2 + N
 * messages.
 */
function ringOf(nodes: number, order: RingOrder): NodeId[] {
  const ring = Array.from({ length: nodes }, (_, i) => (order === "descending" ? nodes - 1 - i : i));
  if (order !== "random") return ring;
  const chance = random(1);
  for (let i = nodes - 1; i > 0; i--) {
    const j = chance.below(i + 1);
    [ring[i], ring[j]] = [ring[j] as NodeId, ring[i] as NodeId];
  }
  return ring;
}

type Extra = Partial<Pick<SimulationOptions<ExtendedChangRoberts>, "trace" | "properties">>;

/** Runs one election in the simulator, with the public protocol. */
function simulated(ring: readonly NodeId[], extra: Extra = {}, callers: readonly NodeId[] = ring): Run {
  const began = performance.now();
  const sim = simulation<ExtendedChangRoberts>({
    protocol: extendedChangRoberts({ ring }),
    nodes: ring,
    seed: 1,
    delayMs: DELAY_MS,
    properties: "at the end",
    ...extra,
  });
  for (const node of ring) sim.wake(node);
  const setUpMs = performance.now() - began;
  const timed = stopwatch();
  for (const node of callers) sim.command(node, { type: "call" });
  sim.run();
  const times = timed();
  const [violation] = sim.verdict();
  if (violation !== undefined)
    throw new Error(`expected the election to be right, but ${violation.property} is violated`);
  return { messages: sim.messages.total, ...times, setUpMs };
}

function bare(ring: readonly NodeId[]): Run {
  const timed = stopwatch();
  const messages = bareElection(ring, DELAY_MS);
  return { messages, ...timed(), setUpMs: 0 };
}

function stopwatch(): () => Pick<Run, "ms" | "cpuMs"> {
  const began = performance.now();
  const spent = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(spent);
    return { ms: performance.now() - began, cpuMs: (user + system) / 1_000 };
  };
}

const rate = ({ messages, ms }: Run): number => messages / ms / 1_000;
const nanoseconds = ({ messages, cpuMs }: Run): number => (cpuMs * 1e6) / messages;

function traced(ring: readonly NodeId[], keeps: boolean): Run {
  let count = 0;
  const kept: TraceEntry[] = [];
  const run = simulated(ring, { trace: keeps ? (entry) => void kept.push(entry) : () => void count++ });
  // Each message has one entry for the send and one for the receive.
  const entries = keeps ? kept.length : count;
  if (entries < 2 * run.messages) throw new Error(`expected at least 2 entries for each message, got ${entries}`);
  return run;
}

/**
 * Repeats elections and adds up their figures. The first one is a warm-up, unless it is already long enough by itself.
 */
function repeated(once: () => Run): Run & { readonly elections: number } {
  const total = { messages: 0, ms: 0, cpuMs: 0, setUpMs: 0, elections: 0 };
  for (let isWarm = false; total.messages < 0.9 * MESSAGES; isWarm = true) {
    const run = once();
    if (!isWarm && run.messages < MESSAGES) continue;
    total.messages += run.messages;
    total.ms += run.ms;
    total.cpuMs += run.cpuMs;
    total.setUpMs += run.setUpMs;
    total.elections += 1;
  }
  return total;
}

function scaled(nodes: number, order: RingOrder) {
  progress(`${nodes} nodes, ${order}`);
  const ring = ringOf(nodes, order);
  const bareRuns = repeated(() => bare(ring));
  const ours = repeated(() => simulated(ring));
  return {
    nodes,
    order,
    messages: ours.messages,
    nsPerMessage: nanoseconds(ours),
    bareNsPerMessage: nanoseconds(bareRuns),
    setUpNsPerNode: (ours.setUpMs * 1e6) / nodes / ours.elections,
  };
}

/** Measures millions of messages per second. Returns null if SimPy is not installed. */
async function simpy(count: number): Promise<number | null> {
  // The system's own Python may have SimPy even if the first Python in the path does not.
  const python = ["python3", "/usr/bin/python3"].find(
    (each) => spawnSync(each, ["-c", "import SimPy.Simulation"]).status === 0,
  );
  if (python === undefined) return null;
  const { stdout } = await promisify(execFile)(python, [checkoutFile("bench/sim-ring.py"), String(count)]);
  const [messages = 0, seconds = 0] = stdout.split(" ").map(Number);
  return messages / seconds / 1e6;
}

const worst = ringOf(RING, "descending");
const measurements = {
  bare: () => bare(worst),
  untraced: () => simulated(worst),
  traced: () => traced(worst, false),
  kept: () => traced(worst, true),
};
const ring = await inTurns(ROUNDS, measurements, { about: `ring of ${RING}: `, warmUps: 2 });
const watched = simulated(ringOf(WATCHED_RING, "descending"), { properties: "every step" });
const peer = await simpy(SIMPY_RING);
const rows = (["ascending", "random"] as const).flatMap((order) =>
  // A random ring of a million nodes sends 15 million messages.
  SCALES.filter((nodes) => !values.quick || order === "ascending" || nodes <= 100_000).map((nodes) =>
    scaled(nodes, order),
  ),
);
progress("a million nodes");
const million = ringOf(1_000_000, "random");
const lone = simulated(million, {}, million.slice(0, 1));
const residentMb = process.memoryUsage().rss / 1e6;
progress("");

if (values.json) console.log(JSON.stringify({ ring, watched, simpy: peer, rows, million: { ...lone, residentMb } }));
else {
  const against = (runs: readonly Run[], time: "ms" | "cpuMs"): string =>
    spread(runs.map((run, round) => (ring.bare[round] as Run)[time] / run[time]));
  const line = (name: string, runs: readonly Run[]): string[] => [
    name,
    spread(runs.map(rate)),
    against(runs, "ms"),
    against(runs, "cpuMs"),
  ];
  const single = (name: string, figure: number): string[] => {
    return [name, figure.toFixed(3), (figure / median(ring.bare.map(rate))).toFixed(4), ""];
  };
  printTable([
    [`ring of ${RING}, ids descending clockwise, all call`, "M messages/s", "of the bare loop", "by processor time"],
    line("bare loop", ring.bare),
    line("Coterie, untraced", ring.untraced),
    line("Coterie, traced, entries counted", ring.traced),
    line("Coterie, traced, entries kept", ring.kept),
    single(`the same, properties at each step, N = ${WATCHED_RING}`, rate(watched)),
    peer === null ? ["SimPy 2 is not installed", "", "", ""] : single(`SimPy 2, N = ${SIMPY_RING}`, peer),
  ]);
  printTable([
    ["ns of processor per message, all call; set-up per node", "nodes", "messages", "Coterie", "bare loop", "set-up"],
    ...rows.map(({ nodes, order, messages, nsPerMessage, bareNsPerMessage, setUpNsPerNode }) => [
      order,
      ...[nodes, messages, nsPerMessage, bareNsPerMessage, setUpNsPerNode].map((figure) => figure.toFixed(0)),
    ]),
  ]);
  console.log(
    `\na million nodes on a ring in random order, one calls: ${lone.messages} messages in ${(lone.ms / 1_000).toFixed(1)} s, after ${(lone.setUpMs / 1_000).toFixed(1)} s of set-up, ${residentMb.toFixed(0)} MB resident`,
  );
}
