/** A campaign on one thread and on two of one process, in turn: how much sooner two are done. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { commandLine } from "./command-line.ts";

const { values } = commandLine("campaign", {
  seeds: {
    such: "<n>",
    default: "100000",
    help: "of simulated elections by epoch-bully with five nodes (default: 100000)",
  },
  rounds: { such: "<n>", default: "2", help: "each on one thread and then on two; the best counts (default: 2)" },
  json: { help: "print the figures as JSON" },
});

const CLI = fileURLToPath(new URL("../../dist/cli/coterie.js", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "coterie-bench-campaign-"));
const file = join(folder, "campaign.json");
const experiment = { name: "elections", simulate: { protocol: "epoch-bully", nodes: 5, delay: "1..10" } };
writeFileSync(
  file,
  JSON.stringify({ name: "bench", seeds: { count: Number(values.seeds) }, experiments: [experiment] }),
);

/** Of the whole command, the start of the process and of its threads among it. */
function secondsWith(workers: number, round: number): number {
  const out = join(folder, `${workers}-${round}`);
  const began = performance.now();
  const words = ["campaign", file, "--out", out, "--workers", String(workers)];
  const { status } = spawnSync(process.execPath, [CLI, ...words], { stdio: ["ignore", "ignore", "inherit"] });
  if (status !== 0) throw new Error(`the campaign ended with code ${status}`);
  return (performance.now() - began) / 1_000;
}

const best = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
for (let round = 0; round < Number(values.rounds); round++)
  for (const [at, workers] of [1, 2].entries()) best[at] = Math.min(best[at] as number, secondsWith(workers, round));
rmSync(folder, { recursive: true });

const [one = 0, two = 0] = best;
if (values.json === true) console.log(JSON.stringify({ seeds: Number(values.seeds), one, two, ratio: one / two }));
else {
  const rate = (seconds: number): string => `${Math.round(Number(values.seeds) / seconds).toLocaleString("en")} runs/s`;
  console.log(`one thread    ${one.toFixed(1)} s  ${rate(one)}`);
  console.log(`two threads   ${two.toFixed(1)} s  ${rate(two)}`);
  console.log(`ratio         ${(one / two).toFixed(2)}`);
}
