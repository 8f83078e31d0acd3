/**
 * The Raft paper's figure 16 in the simulator: how long five servers are without a leader after theirs has crashed, against how
 * random election time-outs are, and how long.
 *
 *     node build/bench/election-timeouts.js [--trials N] [--json] [--picture FILE]
 */
import { writeFileSync } from "node:fs";
import { commandLine } from "./command-line.ts";
import { line, nameOf, published, scales, spreads } from "./election-timeouts/figures.ts";
import { picture } from "./election-timeouts/picture.ts";

const TRIALS = 1_000;
const MAX_TRIALS = 100_000;

const { values, whole } = commandLine("election-timeouts", {
  trials: { such: "N", default: String(TRIALS), help: `how many leaders crash for each line, ${TRIALS} by default` },
  json: { help: "for machines" },
  picture: { such: "FILE", help: "draws the figure, as SVG" },
});

const trials = whole("trials", values.trials, 1, MAX_TRIALS);
const above = spreads.map((timeouts) => line(timeouts, trials));
const below = scales.map((timeouts) => line(timeouts, trials));
if (values.picture !== undefined) writeFileSync(values.picture, picture(above, below));
const rows = [...above, ...below.filter(({ minMs }) => minMs !== 150)].map((each) => {
  const { trials: count, median, mean, worst } = each;
  return { timeouts: nameOf(each), trials: count, median, mean, worst };
});
if (values.json === true) console.log(JSON.stringify({ lines: rows, published }));
else {
  console.log("time-outs         trials    median      mean     worst   ms without a leader");
  for (const { timeouts, trials: count, median, mean, worst } of rows) {
    const cells = [median, mean, worst].map((ms) => ms.toFixed(0).padStart(10)).join("");
    const said = published.filter((each) => each.timeouts === timeouts).map(({ what, ms }) => `${what} ${ms}`);
    console.log(
      `${timeouts.padEnd(14)}${String(count).padStart(10)}${cells}${said.length > 0 ? `   paper: ${said.join(", ")}` : ""}`,
    );
  }
}
