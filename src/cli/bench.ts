/** `coterie bench`: the measurements of `bench/`, each next to a peer in the same run. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { EnvironmentError, UsageError, unexpected } from "../core/errors.ts";
import { wrapped } from "../experiment/paragraph.ts";
import { type Manual, withManual } from "./manual.ts";
import type { Invocation, Output } from "./output.ts";

/** Each benchmark is one file of `bench/`. */
const benchmarks: Readonly<Record<string, string>> = {
  check: "the checker next to SPIN, on the seven reference models: counts, time, memory",
  sim: "the simulator next to a bare loop and SimPy: messages per second, from 100 to a million nodes",
  campaign: "a campaign on one thread and on two: the speedup",
  host: "two processes of the runtime next to a bare echo: round trips per second",
  wire: "the wire codec next to JSON",
  journal: "the journal next to a bare file: records per second that are confirmed durable",
  table: "costs measured next to the formula: table mutex, election, multicast or consensus",
  multicast: "every order of a channel next to a bare fan-out: messages per second and delay, at 3, 5 and 7 processes",
  services:
    "locks and sends per second, and the wait of others after a crash, a pause or an orderly leave, for each timing",
  cluster:
    "the replicated service of join(), or etcd's API, next to etcd: writes, reads and locks per second, fail-over, memory",
  agreement:
    "PBFT next to Raft, processes with journals, 4 and 7 of them: commands per second and delay, and the price of signatures",
  studio:
    "the live page and the laboratory in Chromium, for each protocol: time between frames, work per frame, first paint",
  "super-peers":
    "super-peers by a hash table and by repelling tokens next to random ones: latency, spread, share, load",
};
const names = Object.keys(benchmarks);

export function declare(command: Command, { stdout }: Invocation): void {
  withManual(command, manual)
    .description("Runs a benchmark, with other systems (SPIN and gcc, SimPy, etcd and Go) if they are installed.")
    .argument("[name]", `${names.join(", ")}; without it, lists them`)
    .argument("[options...]", "options of the benchmark, such as --quick or --json")
    .passThroughOptions()
    .allowUnknownOption()
    .action((name: string | undefined, options: readonly string[]) => bench(name, options, stdout));
}

const manual: Manual = {
  examples: ["coterie bench check", "coterie bench sim --quick", "coterie bench check --json"],
  exitCodes: "0 done; 1 the benchmark failed; 2 wrong arguments",
  details: `Benchmarks are part of the source checkout, and \`npm run build\` compiles them. A full run takes some minutes, and \`--quick\` makes
fewer rounds. \`coterie bench NAME --help\` lists the options of a benchmark.

| Benchmark | Measures |
|---|---|
${Object.entries(benchmarks)
  .map(([name, text]) => `| \`${name}\` | ${text} |`)
  .join("\n")}`,
};

async function bench(name: string | undefined, options: readonly string[], stdout: Output): Promise<void> {
  if (name === undefined) {
    const width = Math.max(...names.map(({ length }) => length));
    const rows = Object.entries(benchmarks).map(
      ([each, what]) => `${each.padEnd(width)}  ${wrapped(what, width + 2)}\n`,
    );
    return void stdout.write(rows.join(""));
  }
  if (!Object.hasOwn(benchmarks, name))
    throw new UsageError("bad-argument", unexpected("the benchmark", `one of ${names.join(", ")}`, name));
  const file = fileURLToPath(new URL(`../../build/bench/${name}.js`, import.meta.url));
  if (!existsSync(file))
    throw new EnvironmentError(
      "no-benchmarks",
      "the benchmarks are not built: run `npm run build` in a checkout of Coterie",
    );
  const code = await ended(file, options);
  if (code === 2)
    throw new UsageError("bad-argument", `expected options of the benchmark: see \`coterie bench ${name} --help\``);
  if (code !== 0) throw new EnvironmentError("benchmark-failed", `the benchmark ${name} ended with code ${code}`);
}

/** Runs a script in a separate process, so that this one does not affect the measurement. Ctrl-C reaches both. */
function ended(file: string, options: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [file, ...options], { stdio: "inherit" });
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
    child.on("error", reject);
    child.on("exit", (code) => resolve(code ?? 1));
  });
}
