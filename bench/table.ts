/**
 * What each algorithm costs, measured beside the formula: the registry's own protocols, run in the simulator with links
 * that take one unit of time.
 *
 *     node build/bench/table.js mutex|election|multicast|consensus [--nodes 3,7] [--full] [--json]
 */
import { wrapped } from "../src/experiment/paragraph.ts";
import { commandLine } from "./command-line.ts";
import { consensusCosts } from "./table/consensus.ts";
import { electionCosts } from "./table/election.ts";
import { type Cost, type Figure, measured } from "./table/figure.ts";
import { multicastCosts } from "./table/multicast.ts";
import { mutexCosts } from "./table/mutex.ts";

const tables: Readonly<Record<string, readonly Cost[]>> = {
  mutex: mutexCosts,
  election: electionCosts,
  multicast: multicastCosts,
  consensus: consensusCosts,
};
const SIZES = [3, 4, 7, 9, 13, 16, 25, 31, 49, 64, 1_000];
/** In the one table: as many as fit beside what is measured. */
const FEW = [3, 7, 16];
const MAX_NODES = 10_000;

const number = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });

const span = ([least, most]: readonly [number, number]): string =>
  least === most ? number.format(least) : `${number.format(least)} … ${number.format(most)}`;

const WIDTH = process.stdout.isTTY ? process.stdout.columns : 80;
const WIDEST_FORMULA = 24;

/** Beside each other, for one column each: lines of texts that are broken to fit. */
function beside(cells: readonly string[], widths: readonly number[]): string {
  const broken = cells.map((cell, at) => wrapped(cell, 0, widths[at] ?? 0).split("\n"));
  const lines = Array.from({ length: Math.max(...broken.map(({ length }) => length)) }, (_, line) =>
    broken.map((cell, at) => {
      const text = cell[line] ?? "";
      return at < 2 ? text.padEnd(widths[at] ?? 0) : text.padStart(widths[at] ?? 0);
    }),
  );
  return lines.map((line) => `  ${line.join("  ")}`.trimEnd()).join("\n");
}

/** All in one table: a heading for each algorithm, a row for each claim, a column for each size. */
function showTogether(all: readonly (readonly Figure[])[], sizes: readonly number[]): void {
  const rows = all.flatMap((figures) => {
    const [first] = figures;
    if (first === undefined) return [];
    const measured = sizes.map((size) => {
      const figure = figures.find(({ nodes }) => nodes === size);
      return figure === undefined ? "" : `${span(figure.measured)}${figure.fits ? "" : " ✗"}`;
    });
    return [{ protocol: first.protocol, what: `${first.what}, ${first.unit}`, formula: first.formula, measured }];
  });
  const heads = sizes.map((size) => `N = ${number.format(size)}`);
  const figures = heads.map((head, at) =>
    Math.max(head.length, ...rows.map(({ measured }) => measured[at]?.length ?? 0)),
  );
  const formula = Math.min(WIDEST_FORMULA, Math.max(...rows.map((row) => row.formula.length)));
  const room = WIDTH - 4 - formula - figures.reduce((sum, width) => sum + width + 2, 0);
  const what = Math.max(20, Math.min(room, Math.max(...rows.map((row) => row.what.length))));
  const widths = [what, formula, ...figures];
  console.log(beside(["measured", "formula", ...heads], widths));
  for (const [at, row] of rows.entries()) {
    if (row.protocol !== rows[at - 1]?.protocol) console.log(`\n${row.protocol}`);
    console.log(beside([row.what, row.formula, ...row.measured], widths));
  }
}

/** A claim's formula and what was measured, a column for each size. */
function show(figures: readonly Figure[]): void {
  const [first] = figures;
  if (first === undefined) return;
  console.log(`\n${first.protocol}: ${first.what}, in ${first.unit}: ${first.formula}`);
  const columns = figures.map(({ nodes, expected, measured }) => [
    number.format(nodes),
    span(expected),
    span(measured),
  ]);
  for (const [row, name] of ["N", "formula", "measured"].entries()) {
    const cells = columns.map((column) =>
      (column[row] as string).padStart(Math.max(...column.map(({ length }) => length))),
    );
    console.log(`  ${name.padEnd(8)}  ${cells.join("  ")}`);
  }
  const wrong = figures.filter(({ fits }) => !fits).map(({ nodes }) => number.format(nodes));
  if (wrong.length > 0) console.log(`  does not fit for N = ${wrong.join(", ")}`);
}

const { values, positionals, refuse, wholes } = commandLine(
  "table",
  {
    nodes: {
      such: "3,7,16",
      help: `how many nodes; ${FEW.join(", ")} if not said, with --full or --json ${SIZES.join(", ")}`,
    },
    full: { help: "a table for each cost, with what the formula gives below what was measured" },
    json: { help: "one object for each figure, as a list" },
  },
  { positionals: "mutex|election|multicast|consensus" },
);
const [name] = positionals;
const found = Object.entries(tables).find(([known]) => known === name);
const [, costs] =
  found !== undefined && positionals.length === 1
    ? found
    : refuse(`expected one of ${Object.keys(tables).join(", ")}, got ${positionals.join(" ") || "nothing"}`);

const isFull = values.full === true || values.json === true;
const usual = isFull ? SIZES : FEW;
const sizes = values.nodes === undefined ? usual : wholes("nodes", values.nodes, 3, MAX_NODES);
const byCost = costs.map((cost) => {
  const figures = sizes.flatMap((nodes) => {
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${cost.protocol}: ${cost.what}, N = ${nodes}`);
    return measured(cost, nodes) ?? [];
  });
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  if (values.full === true && values.json !== true) show(figures);
  return figures;
});
if (!isFull) showTogether(byCost, sizes);
const all = byCost.flat();
const wrong = all.filter(({ fits }) => !fits);
if (values.json === true) console.log(JSON.stringify(all));
else console.log(`\n${all.length - wrong.length} of ${all.length} figures fit their formula.`);
process.exitCode = wrong.length === 0 ? 0 : 1;
