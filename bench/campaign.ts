/**
 * Measures how much faster a campaign is on two threads of one process than on one thread, in alternating runs. The
 * times include starting the process and its threads.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { commandLine } from "./command-line.ts";
import { inTurns, printRows, Rows } from "./results.ts";
import { checkoutFile } from "./workers.ts";

const { values, whole } = commandLine("campaign", {
  seeds: {
    such: "<n>",
    default: "100000",
    help: "of simulated elections by epoch-bully with five nodes (default: 100000)",
  },
  rounds: { such: "<n>", default: "2", help: "each on one thread and then on two (default: 2)" },
  json: { help: "print the figures as JSON" },
});
const seeds = whole("seeds", values.seeds, 1, 1e9);

const folder = mkdtempSync(join(tmpdir(), "coterie-bench-campaign-"));
const file = join(folder, "campaign.json");
const experiment = { name: "elections", simulate: { protocol: "epoch-bully", nodes: 5, delay: "1..10" } };
writeFileSync(file, JSON.stringify({ name: "bench", seeds: { count: seeds }, experiments: [experiment] }));

/** Measures runs per second. */
function rateWith(workers: number): number {
  const out = mkdtempSync(join(folder, "out-"));
  rmSync(out, { recursive: true });
  const began = performance.now();
  const words = ["campaign", file, "--out", out, "--workers", String(workers)];
  const command = [checkoutFile("dist/cli/coterie.js"), ...words];
  const { status } = spawnSync(process.execPath, command, { stdio: ["ignore", "ignore", "inherit"] });
  if (status !== 0) throw new Error(`the campaign exited with code ${status}`);
  return (seeds * 1_000) / (performance.now() - began);
}

const measurements = { "one thread": () => rateWith(1), "two threads": () => rateWith(2) };
const found = await inTurns(whole("rounds", values.rounds, 1, 100), measurements, { warmUps: 0 });
rmSync(folder, { recursive: true });
const rows = new Rows("campaign");
rows.addRounds(`${seeds} seeds`, "runs/s", found);
if (values.json) console.log(JSON.stringify(rows.all));
else printRows("campaign", rows.all, "two threads");
