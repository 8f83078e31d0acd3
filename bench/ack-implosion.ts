/**
 * Ack implosion: the acknowledgements of one multicast that come to its sender, against the number of members; how long
 * they queue there, and when the sender is done with them.
 *
 *     node build/bench/ack-implosion.js [--nodes 3,7] [--processing P] [--json] [--picture FILE]
 */
import { writeFileSync } from "node:fs";
import { type Figures, measured, methods } from "./ack-implosion/figures.ts";
import { picture } from "./ack-implosion/picture.ts";
import { PROCESSING, SIZES } from "./ack-implosion/settings.ts";
import { commandLine } from "./command-line.ts";

const MAX_NODES = 10_000;
const KEY = `
done after: from the sending until the sender is done with the last acknowledgement that comes to it.
–: no acknowledgement comes. Where all speak, each says in its own messages what it has received.`;

const { values, refuse, wholes } = commandLine("ack-implosion", {
  nodes: { such: "3,7,16", help: `how many members; ${SIZES.join(", ")} if not said` },
  processing: {
    such: "P",
    help: `how long a node is busy with one message, in message times, ${PROCESSING} by default`,
  },
  json: { help: "one object for each figure, as a list" },
  picture: { such: "FILE", help: "draws them, as SVG" },
});

const sizes = values.nodes === undefined ? SIZES : wholes("nodes", values.nodes, 2, MAX_NODES);
const processing = values.processing === undefined ? PROCESSING : Number(values.processing);
if (!(processing >= 0 && processing <= 100))
  refuse(`expected --processing to be from 0 to 100, got ${values.processing}`);

const figures: Figures[] = [];
for (const method of methods)
  for (const nodes of sizes) {
    if (nodes > method.maxNodes) continue;
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${method.name}, N = ${nodes}`);
    figures.push(measured(method, nodes, processing));
  }
if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");

if (values.picture !== undefined) writeFileSync(values.picture, picture(figures, processing));
if (values.json === true) console.log(JSON.stringify(figures));
else {
  for (const { name } of methods) show(figures.filter(({ method }) => method === name));
  console.log(KEY);
}

function show(rows: readonly Figures[]): void {
  const number = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });
  console.log(`\n${rows[0]?.method ?? ""}`);
  const written = (figure: number | null): string => (figure === null ? "–" : number.format(figure));
  const lines: readonly (readonly [string, (row: Figures) => number | null])[] = [
    ["N", ({ nodes }) => nodes],
    ["acknowledgements at the sender", ({ acknowledgements }) => acknowledgements],
    ["longest queue there", ({ longestQueue }) => longestQueue],
    ["done after, message times", ({ acknowledgements, doneAfter }) => (acknowledgements === 0 ? null : doneAfter)],
  ];
  const cells = lines.map(([, figureOf]) => rows.map((row) => written(figureOf(row))));
  const widths = rows.map((_, column) => Math.max(...cells.map((line) => (line[column] as string).length)));
  for (const [i, [name]] of lines.entries()) {
    const line = (cells[i] as readonly string[]).map((cell, column) => cell.padStart(widths[column] as number));
    console.log(`  ${name.padEnd(30)}  ${line.join("  ")}`);
  }
}
