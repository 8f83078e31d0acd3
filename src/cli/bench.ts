/** `coterie bench`: the measurements in `bench/`, each run side by side with a comparable system. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import type { Command } from "commander";
import { EnvironmentError, UsageError, unexpected } from "../core/errors.ts";
import { wrapped } from "../experiment/paragraph.ts";
import { packageFile } from "../runtime/package-files.ts";
import { type Manual, withManual } from "./manual.ts";
import type { Invocation, Output } from "./output.ts";

/** The benchmarks, each with its file in `bench/`. */
const benchmarks: Readonly<Record<string, string>> = {
  check: "the checker compared with SPIN on the seven reference models: counts, time, memory",
  sim: "the simulator compared with a bare loop and SimPy: messages per second with 100 to a million nodes",
  campaign: "a campaign on two threads compared with one thread: the speedup",
  host: "two runtime processes compared with a bare echo server: round trips per second",
  wire: "the wire codec compared with JSON",
  journal: "the journal compared with a bare file: durable records per second",
  table: "measured costs compared with their formulas, for mutex, election, multicast or consensus",
  multicast:
    "every channel order compared with a bare fan-out: messages per second and delay, with 3, 5 and 7 processes",
  services:
    "for each timing profile: locks and sends per second, and how long other members wait after a crash, a pause or a graceful leave",
  cluster:
    "join()'s replicated service, or its etcd API, compared with etcd: writes, reads and locks per second, failover, memory",
  agreement:
    "PBFT compared with Raft, with 4 and 7 processes that keep journals: commands per second, delay, and the cost of signatures",
  studio:
    "the live page and the laboratory in Chromium, for each protocol: time between frames, work per frame, first paint",
  "super-peers":
    "super-peers chosen by a hash table or by repelling tokens, compared with random ones: latency, spread, share, load",
};
const names = Object.keys(benchmarks);

export function declare(command: Command, { stdout }: Invocation): void {
  withManual(command, manual)
    .description(
      "Runs a benchmark, and compares other systems (SPIN with gcc, SimPy, etcd with Go) if they are installed.",
    )
    .argument("[name]", `${names.join(", ")}; omit it to list them`)
    .argument("[options...]", "options for the benchmark, such as --quick or --json")
    .passThroughOptions()
    .allowUnknownOption()
    .action((name: string | undefined, options: readonly string[]) => bench(name, options, stdout));
}

const manual: Manual = {
  examples: ["coterie bench check", "coterie bench sim --quick", "coterie bench check --json"],
  exitCodes: "0 done; 1 the benchmark failed; 2 invalid arguments",
  details: `Benchmarks are part of the source checkout, and \`npm run build\` compiles them. A full run takes several minutes; \`--quick\` runs
fewer rounds. \`coterie bench NAME --help\` lists a benchmark's options.

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
  const file = packageFile(`build/bench/${name}.js`);
  if (!existsSync(file))
    throw new EnvironmentError(
      "no-benchmarks",
      "the benchmarks have not been built: run `npm run build` in a checkout of Coterie",
    );
  const code = await ended(file, options);
  if (code === 2)
    throw new UsageError("bad-argument", `expected options of the benchmark: see \`coterie bench ${name} --help\``);
  if (code !== 0) throw new EnvironmentError("benchmark-failed", `the benchmark ${name} ended with code ${code}`);
}

/** Runs a script in a separate process, so that this process does not affect the measurement. Ctrl-C reaches both. */
function ended(file: string, options: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [file, ...options], { stdio: "inherit" });
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
    child.on("error", reject);
    child.on("exit", (code) => resolve(code ?? 1));
  });
}
