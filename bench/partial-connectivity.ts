/**
 * Raft and Multi-Paxos while links are broken in part: how long nothing is decided, and how often another node begins to lead.
 *
 *     node build/bench/partial-connectivity.js [--seeds N] [--json]
 */
import { parseArgs } from "node:util";
import { breakages, FOR_MS, measured, SEEDS, settings } from "./partial-connectivity/figures.ts";
import { helpIfAsked } from "./usage.ts";

const MAX_SEEDS = 10_000;

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: String(SEEDS) },
    json: { type: "boolean" },
    help: { type: "boolean" },
  },
});
helpIfAsked(values.help === true, "partial-connectivity", {
  "--seeds N": `how many runs of each, ${SEEDS} by default`,
  "--json": "one object for each row, as a list",
});

const seeds = Number(values.seeds);
if (!Number.isSafeInteger(seeds) || seeds < 1 || seeds > MAX_SEEDS) {
  console.error(
    `coterie bench partial-connectivity: expected --seeds to be from 1 to ${MAX_SEEDS}, got ${values.seeds}`,
  );
  process.exit(2);
}

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
