/**
 * Duelling proposers of Paxos: all propose at once, and refuse each other. How long until one has a whole attempt for itself,
 * with a random back-off and without.
 *
 *     node build/bench/duel.js [--seeds K] [--json] [--picture FILE]
 */
import { writeFileSync } from "node:fs";
import { commandLine } from "./command-line.ts";
import { measured, NODES, quantile, settings, UNTIL_MS } from "./duel/figures.ts";
import { picture } from "./duel/picture.ts";

const { values, refuse } = commandLine("duel", {
  seeds: { such: "K", help: "at most so many for each setting" },
  json: { help: "one object for each setting, as a list" },
  picture: { such: "FILE", help: "draws them, as SVG" },
});

const most = values.seeds === undefined ? Number.POSITIVE_INFINITY : Number(values.seeds);
if (values.seeds !== undefined && !(Number.isSafeInteger(most) && most >= 1))
  refuse(`expected --seeds to be a whole number > 0, got ${values.seeds}`);

const figures = settings.map((setting) => measured({ ...setting, seeds: Math.min(setting.seeds, most) }));
if (values.picture !== undefined) writeFileSync(values.picture, picture(figures));
if (values.json === true) console.log(JSON.stringify(figures));
else {
  console.log(`${NODES} nodes propose at once; milliseconds until the first has decided, – beyond ${UNTIL_MS}\n`);
  const head = ["", "seeds", "half", "9 of 10", "99 of 100", "the last", "rounds"];
  const written = (ms: number | null): string => (ms === null ? "–" : String(Math.round(ms)));
  const rows = figures.map((each) => [
    each.name,
    String(each.decidedAt.length),
    ...[0.5, 0.9, 0.99, 1].map((share) => written(quantile(each, share))),
    String(each.mostRounds),
  ]);
  for (const row of [head, ...rows])
    console.log(row.map((cell, i) => (i === 0 ? cell.padEnd(26) : cell.padStart(11))).join(""));
}
