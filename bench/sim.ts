/**
 * Messages per second of the simulator: Chang–Roberts on a ring of 1,000 in the worst order, beside a bare loop that
 * knows nothing but this algorithm (`bare-loop.ts`) and beside SimPy where it is installed, in rounds in turn; then the
 * cost of a message on rings of 100 to a million nodes.
 *
 *     node build/bench/sim.js [--quick] [--json]
 */
import { execFile, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { TraceEntry } from "../src/trace/entry.ts";
import { commandLine } from "./command-line.ts";
import { median, spread } from "./figures.ts";
import { barely, type RingOrder, type Run, ringOf, simulatedElection } from "./sim-ring.ts";

interface Size {
  readonly ring: number;
  readonly rounds: number;
  /** Of the run that looks at all properties after every step: each of its steps costs as much as there are nodes. */
  readonly watchedRing: number;
  readonly scales: readonly number[];
  /** Each row repeats its election until it has sent about as many. */
  readonly messagesPerRow: number;
  readonly simpyRing: number;
}

const full: Size = {
  ring: 1_000,
  rounds: 9,
  watchedRing: 200,
  scales: [100, 1_000, 10_000, 100_000, 1_000_000],
  messagesPerRow: 3_000_000,
  simpyRing: 1_000,
};
const quick: Size = { ...full, rounds: 5, messagesPerRow: 300_000, simpyRing: 300 };

const rate = ({ messages, ms }: Run): number => messages / ms / 1_000;
const nanoseconds = ({ messages, cpuMs }: Run): number => (cpuMs * 1e6) / messages;

/** Round by round. The first rounds warm up. */
function worstRing({ ring: count, rounds }: Size): Record<"bare" | "untraced" | "traced" | "kept", Run[]> {
  const ring = ringOf(count, "descending");
  const figures = { bare: [] as Run[], untraced: [] as Run[], traced: [] as Run[], kept: [] as Run[] };
  for (let round = -2; round < rounds; round++) {
    let entries = 0;
    const kept: TraceEntry[] = [];
    const runs = {
      bare: barely(ring),
      untraced: simulatedElection(ring, {}),
      traced: simulatedElection(ring, { trace: () => void entries++ }),
      kept: simulatedElection(ring, { trace: (entry) => void kept.push(entry) }),
    };
    // Each message is an entry when it is sent and another when it is received.
    for (const made of [entries, kept.length])
      if (made < 2 * runs.traced.messages) throw new Error(`expected at least 2 entries for each message, got ${made}`);
    if (round < 0) continue;
    for (const name of ["bare", "untraced", "traced", "kept"] as const) figures[name].push(runs[name]);
  }
  return figures;
}

/** As many elections as it takes, all in one figure. The first one warms up, unless it is long enough by itself. */
function repeated(once: () => Run, messages: number): Run & { readonly elections: number } {
  const total = { messages: 0, ms: 0, cpuMs: 0, setUpMs: 0, elections: 0 };
  for (let isWarm = false; total.messages < 0.9 * messages; isWarm = true) {
    const run = once();
    if (!isWarm && run.messages < messages) continue;
    total.messages += run.messages;
    total.ms += run.ms;
    total.cpuMs += run.cpuMs;
    total.setUpMs += run.setUpMs;
    total.elections += 1;
  }
  return total;
}

interface Row {
  readonly nodes: number;
  readonly order: RingOrder;
  readonly messages: number;
  readonly nsPerMessage: number;
  readonly bareNsPerMessage: number;
  readonly setUpNsPerNode: number;
}

function row(nodes: number, order: RingOrder, messagesPerRow: number): Row {
  const ring = ringOf(nodes, order);
  const bare = repeated(() => barely(ring), messagesPerRow);
  const ours = repeated(() => simulatedElection(ring, {}), messagesPerRow);
  return {
    nodes,
    order,
    messages: ours.messages,
    nsPerMessage: nanoseconds(ours),
    bareNsPerMessage: nanoseconds(bare),
    setUpNsPerNode: (ours.setUpMs * 1e6) / nodes / ours.elections,
  };
}

/** Millions of messages per second, or null where SimPy is not installed. */
async function simpy(count: number): Promise<number | null> {
  // The system's Python may know SimPy where another one, first on the path, does not.
  const python = ["python3", "/usr/bin/python3"].find(
    (each) => spawnSync(each, ["-c", "import SimPy.Simulation"]).status === 0,
  );
  if (python === undefined) return null;
  // Beside the sources, not beside what was compiled from them.
  const script = fileURLToPath(new URL("../../bench/sim-ring.py", import.meta.url));
  const { stdout } = await promisify(execFile)(python, [script, String(count)]);
  const [messages = 0, seconds = 0] = stdout.split(" ").map(Number);
  return messages / seconds / 1e6;
}

function report(size: Size, ring: ReturnType<typeof worstRing>, watched: Run, peer: number | null): string[] {
  const against = (runs: readonly Run[], time: "ms" | "cpuMs"): string =>
    spread(
      runs.map((run, round) => (ring.bare[round] as Run)[time] / run[time]),
      2,
    ).padEnd(20);
  const line = (name: string, runs: readonly Run[]): string =>
    `  ${name.padEnd(36)}${spread(runs.map(rate), 2).padEnd(20)}${against(runs, "ms")}${against(runs, "cpuMs").trimEnd()}`;
  const single = (name: string, figure: number): string =>
    `  ${name.padEnd(36)}${figure.toFixed(3).padEnd(20)}${(figure / median(ring.bare.map(rate))).toFixed(4)}`;
  return [
    `ring of ${size.ring}, ids descending clockwise, all call: millions of messages per second, and beside the bare loop`,
    "by the clock and by processor time, which other work on the machine changes less;",
    `median [least–most] of ${size.rounds} rounds in turn`,
    `  ${"".padEnd(36)}${"M messages/s".padEnd(20)}${"ratio".padEnd(20)}ratio, processor`,
    line("bare loop", ring.bare),
    line("Coterie, untraced", ring.untraced),
    line("Coterie, traced, entries counted", ring.traced),
    line("Coterie, traced, entries kept", ring.kept),
    single(`same, properties each step, N = ${size.watchedRing}`, rate(watched)),
    peer === null ? "  SimPy 2 is not installed here" : single(`SimPy 2, N = ${size.simpyRing}`, peer),
  ];
}

function rowText({ nodes, order, messages, nsPerMessage, bareNsPerMessage, setUpNsPerNode }: Row): string {
  const cells = [nodes, messages, nsPerMessage.toFixed(0), bareNsPerMessage.toFixed(0), setUpNsPerNode.toFixed(0)];
  return `  ${order.padEnd(10)}${cells.map((cell) => String(cell).padStart(12)).join("")}`;
}

/** Runs the benchmark and prints it. */
export async function benchSim(args: readonly string[]): Promise<void> {
  const { values } = commandLine(
    "sim",
    {
      quick: { help: "fewer rounds and messages" },
      json: { help: "the figures as JSON" },
    },
    { args },
  );
  const size = values.quick ? quick : full;
  const say = (line: string): void => {
    if (!values.json) console.log(line);
  };

  const stage = (what: string): void => {
    if (process.stderr.isTTY) process.stderr.write(`… ${what}\n`);
  };

  stage(`elections on a ring of ${size.ring}`);
  const ring = worstRing(size);
  stage("the same with all properties after every step, and SimPy");
  const watched = simulatedElection(ringOf(size.watchedRing, "descending"), { properties: "every step" });
  const peer = await simpy(size.simpyRing);
  for (const line of report(size, ring, watched, peer)) say(line);

  say("\nnanoseconds of processor time per message, all call, untraced; set-up is per node");
  say(
    `  ids       ${["nodes", "messages", "Coterie", "bare loop", "set-up"].map((word) => word.padStart(12)).join("")}`,
  );
  const rows: Row[] = [];
  for (const order of ["ascending", "random"] as const) {
    for (const nodes of size.scales) {
      if (values.quick && order === "random" && nodes > 100_000) continue; // 15 million messages.
      const made = row(nodes, order, size.messagesPerRow);
      rows.push(made);
      say(rowText(made));
    }
  }

  stage("a million nodes");
  const million = ringOf(1_000_000, "random");
  const lone = simulatedElection(million, {}, million.slice(0, 1));
  const residentMb = process.memoryUsage().rss / 1e6;
  say(
    `\na million nodes on a ring in random order, one calls: ${lone.messages} messages in ${(lone.ms / 1_000).toFixed(1)} s,`,
  );
  say(`after ${(lone.setUpMs / 1_000).toFixed(1)} s of set-up, ${residentMb.toFixed(0)} MB resident`);
  if (values.json) console.log(JSON.stringify({ ring, watched, simpy: peer, rows, million: { ...lone, residentMb } }));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    await benchSim(process.argv.slice(2));
  } catch (error) {
    const isUsage = (error as { code?: string }).code?.startsWith("ERR_PARSE_ARGS") === true;
    if (!isUsage) throw error;
    console.error(`${(error as Error).message}; the options are --quick and --json`);
    process.exitCode = 2;
  }
}
