/**
 * Compares exhaustive exploration with SPIN. Both fully explore the same transition systems (`models/*.pml`,
 * `src/check/models`), in alternating runs, each in a new process. Times are for the whole process: they include Node's
 * startup, but not SPIN's compilation. Memory is the peak resident set size.
 *
 *     npx coterie bench check [--quick] [--rounds 5] [--json]
 */
import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type ExploreOptions, explore } from "../src/check/explore.ts";
import { mutexModel, ringModel } from "../src/check/reference-models.ts";
import { commandLine } from "./command-line.ts";
import { inTurns, median, printTable, spread } from "./results.ts";
import { checkoutFile, ownFile } from "./workers.ts";

type System = "chang-roberts" | "ricart-agrawala";

interface Row {
  readonly system: System;
  /** The number of nodes and, for `ricart-agrawala`, how many times each of them enters. */
  readonly size: readonly number[];
  readonly states: number;
  readonly transitions: number;
  /** The default number of rounds. */
  readonly rounds: number;
}

const rows: readonly Row[] = [
  { system: "chang-roberts", size: [8], states: 7_060, transitions: 36_124, rounds: 5 },
  { system: "chang-roberts", size: [9], states: 15_148, transitions: 90_895, rounds: 5 },
  { system: "chang-roberts", size: [11], states: 185_597, transitions: 1_215_460, rounds: 5 },
  { system: "chang-roberts", size: [12], states: 397_059, transitions: 3_022_267, rounds: 5 },
  { system: "ricart-agrawala", size: [3, 1], states: 5_772, transitions: 10_942, rounds: 5 },
  { system: "ricart-agrawala", size: [3, 2], states: 608_001, transitions: 1_229_989, rounds: 5 },
  { system: "ricart-agrawala", size: [3, 3], states: 8_234_657, transitions: 17_986_731, rounds: 3 },
];

/** The states and transitions of `init`, which only SPIN counts. */
const INIT = { states: 1, transitions: 2 };

interface Run {
  readonly states: number;
  readonly transitions: number;
  readonly seconds: number;
  /** Null if unknown. */
  readonly megabytes: number | null;
}

const run = promisify(execFile);
const models = checkoutFile("bench/models");
const TIME = "/usr/bin/time";

function model({ system, size: [nodes = 0, entries = 0] }: Pick<Row, "system" | "size">): ExploreOptions<never> {
  return (system === "chang-roberts" ? ringModel(nodes) : mutexModel(nodes, entries)) as never;
}

async function timed(
  file: string,
  args: readonly string[],
): Promise<{ output: string; seconds: number; rss: number | null }> {
  const began = performance.now();
  const canMeasure = existsSync(TIME);
  const [command, all] = canMeasure ? [TIME, ["-f", "%M", file, ...args]] : [file, [...args]];
  const { stdout, stderr } = await run(command, all, { maxBuffer: 1 << 26 });
  const seconds = (performance.now() - began) / 1_000;
  return { output: stdout, seconds, rss: canMeasure ? Number(stderr.trim().split("\n").at(-1)) / 1_024 : null };
}

async function ours({ system, size }: Row): Promise<Run> {
  const words = [ownFile("check"), "--explore", [system, ...size].join()];
  const { output, seconds } = await timed(process.execPath, words);
  const { states, transitions, megabytes } = JSON.parse(output);
  return { states, transitions, seconds, megabytes };
}

/** Explores one row in a child process and prints the result. */
function exploreAlone(row: string): void {
  const [system, ...size] = row.split(",");
  const { states, transitions } = explore(model({ system: system as System, size: size.map(Number) }));
  const megabytes = process.resourceUsage().maxRSS / 1_024;
  console.log(JSON.stringify({ states, transitions, megabytes }));
}

async function spins({ system, size, states }: Row, folder: string): Promise<Run> {
  const pan = join(folder, [system, ...size].join("-"));
  if (!existsSync(pan)) {
    const [nodes, entries = 1] = size;
    await run("spin", [`-DN=${nodes}`, `-DK=${entries}`, "-a", join(models, `${system}.pml`)], { cwd: folder });
    const flags = ["-O3", "-DSAFETY", "-DVECTORSZ=2048", "-DMEMLIM=4000", "-DNOREDUCE"];
    await run("gcc", [...flags, "-o", pan, "pan.c"], { cwd: folder });
  }
  // Size the stack and the hash table for this number of states, since larger ones would slow SPIN down.
  const bounds = [`-m${Math.ceil(1.2 * states)}`, `-w${Math.ceil(Math.log2(states)) + 1}`];
  const { output, seconds, rss } = await timed(pan, ["-E", ...bounds]);
  const figure = (pattern: RegExp): number => Number(pattern.exec(output)?.[1]);
  return {
    states: figure(/(\d+) states, stored/) - INIT.states,
    transitions: figure(/(\d+) transitions/) - INIT.transitions,
    seconds,
    megabytes: rss,
  };
}

function isThere(command: string): boolean {
  try {
    execFileSync(command, ["--version"], { stdio: "ignore" });
    return true;
  } catch (error) {
    // SPIN has no --version option and exits with an error, which shows that it is installed.
    return (error as NodeJS.ErrnoException).code !== "ENOENT";
  }
}

interface Comparison extends Row {
  readonly ours: readonly Run[];
  readonly spins: readonly Run[];
  readonly isExact: boolean;
}

async function compare(row: Row, rounds: number, folder: string | null): Promise<Comparison> {
  const measurements = folder === null ? {} : { spins: () => spins(row, folder) };
  const about = `${row.system} ${row.size.join()}: `;
  const found = await inTurns<string, Run>(rounds, { ours: () => ours(row), ...measurements }, { about, warmUps: 0 });
  const isExact = Object.values(found)
    .flat()
    .every(({ states, transitions }) => states === row.states && transitions === row.transitions);
  return { ...row, ours: found.ours ?? [], spins: found.spins ?? [], isExact };
}

function cellsOf({ system, size, states, transitions, ours, spins, isExact }: Comparison): string[] {
  const seconds = (runs: readonly Run[]): string =>
    runs.length === 0 ? "–" : spread(runs.map((each) => each.seconds));
  const megabytes = (runs: readonly Run[]): string => {
    const all = runs.flatMap((each) => each.megabytes ?? []);
    return all.length === 0 ? "–" : Math.max(...all).toFixed(0);
  };
  const ratios = spins.map((each, round) => each.seconds / (ours[round] as Run).seconds);
  return [
    `${system} ${size.join()}`,
    ...[states, transitions].map((count) => count.toLocaleString("en")),
    ...[ours, spins].flatMap((runs) => [seconds(runs), megabytes(runs)]),
    ratios.length === 0 ? "–" : median(ratios).toFixed(2),
    isExact ? "exact" : "DIFFER",
  ];
}

const { values } = commandLine("check", {
  quick: { help: "models of up to a million states, one round each" },
  rounds: { such: "<n>", help: "how often each model is explored, in turns" },
  json: { help: "the figures as JSON" },
  explore: { such: "<n>", help: null }, // For the child process only.
});
if (values.explore !== undefined) exploreAlone(values.explore);
else {
  const hasSpin = isThere("spin") && isThere("gcc");
  if (!hasSpin) console.error("spin or gcc is not installed: Coterie runs alone");
  const folder = hasSpin ? mkdtempSync(join(tmpdir(), "coterie-bench-")) : null;
  const comparisons: Comparison[] = [];
  try {
    for (const row of rows) {
      if (values.quick && row.states > 1_000_000) continue;
      const rounds = values.rounds === undefined ? (values.quick ? 1 : row.rounds) : Number(values.rounds);
      comparisons.push(await compare(row, rounds, folder));
    }
  } finally {
    if (folder !== null) rmSync(folder, { recursive: true });
  }
  const head = ["system", "states", "transitions", "Coterie s", "MB", "SPIN s", "MB", "SPIN / Coterie", "counts"];
  if (values.json) console.log(JSON.stringify(comparisons, null, 2));
  else {
    console.log("whole processes, seconds as median [min–max], the greatest resident set");
    printTable([head, ...comparisons.map(cellsOf)]);
  }
  if (comparisons.some(({ isExact }) => !isExact)) throw new Error("expected the counts of the models, got others");
}
