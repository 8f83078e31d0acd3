/**
 * Raft and Multi-Paxos while links are broken in part: how long nothing is decided, and how often another node begins to lead.
 *
 *     node build/bench/partial-connectivity.js [--seeds N] [--json]
 */

import { commandLine } from "./command-line.ts";
import { breakages, FOR_MS, measured, SEEDS, settings } from "./partial-connectivity/figures.ts";

const MAX_SEEDS = 10_000;

const { values, whole } = commandLine("partial-connectivity", {
  seeds: { such: "N", default: String(SEEDS), help: `how many runs of each, ${SEEDS} by default` },
  json: { help: "one object for each row, as a list" },
});

const seeds = whole("seeds", values.seeds, 1, MAX_SEEDS);

const rows = breakages.flatMap((breakage) => settings.map((setting) => measured(setting, breakage, seeds)));
if (values.json === true) console.log(JSON.stringify(rows));
else {
  console.log(`${FOR_MS} ms after the links broke; – beyond that\n`);
  const written = (ms: number | null): string => (ms === null ? "–" : ms.toFixed(0));
  const head = ["", "", "decides again", "median, ms", "worst, ms", "new leaders"];
  const lines = rows.map((row) => [
    row.breakage,
    row.setting,
    `${row.recovered} of ${row.seeds}`,
    written(row.medianMs),
    written(row.worstMs),
    String(row.leaders),
  ]);
  for (const cells of [head, ...lines])
    console.log(cells.map((cell, i) => (i < 2 ? cell.padEnd(i === 0 ? 22 : 40) : cell.padStart(15))).join(""));
}
