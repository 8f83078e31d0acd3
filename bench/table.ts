/**
 * What each algorithm costs, measured beside the formula: the registry's own protocols, run in the simulator with links
 * that take one unit of time.
 *
 *     node build/bench/table.js mutex|election|multicast|consensus [--nodes 3,7] [--json]
 */
import { parseArgs } from "node:util";
import { consensusClaims } from "./table/consensus.ts";
import { electionClaims } from "./table/election.ts";
import { type Claim, type Figure, measured } from "./table/figure.ts";
import { multicastClaims } from "./table/multicast.ts";
import { mutexClaims } from "./table/mutex.ts";
import { helpIfAsked } from "./usage.ts";

const tables: Readonly<Record<string, readonly Claim[]>> = {
  mutex: mutexClaims,
  election: electionClaims,
  multicast: multicastClaims,
  consensus: consensusClaims,
};
const SIZES = [3, 4, 7, 9, 13, 16, 25, 31, 49, 64, 1_000];
const MAX_NODES = 10_000;

const number = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });

function refuse(message: string): never {
  console.error(`coterie bench table: ${message}`);
  process.exit(2);
}

function sizesFrom(text: string | undefined): readonly number[] {
  if (text === undefined) return SIZES;
  const sizes = text.split(",").map(Number);
  const isSound = (size: number): boolean => Number.isSafeInteger(size) && size >= 3 && size <= MAX_NODES;
  if (!sizes.every(isSound))
    refuse(`expected --nodes to be whole numbers from 3 to ${MAX_NODES}, such as 3,7,16, got ${text}`);
  return sizes;
}

const span = ([least, most]: readonly [number, number]): string =>
  least === most ? number.format(least) : `${number.format(least)} … ${number.format(most)}`;

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

const { values, positionals } = parseArgs({
  options: { nodes: { type: "string" }, json: { type: "boolean" }, help: { type: "boolean" } },
  allowPositionals: true,
});
helpIfAsked(values.help === true, "table mutex|election|multicast|consensus", {
  "--nodes 3,7,16": `how many nodes; ${SIZES.join(", ")} if not said`,
  "--json": "one object for each figure, as a list",
});
const [name] = positionals;
const claims = name === undefined ? undefined : Object.entries(tables).find(([known]) => known === name)?.[1];
if (claims === undefined || positionals.length > 1)
  refuse(`expected one of ${Object.keys(tables).join(", ")}, got ${positionals.join(" ") || "nothing"}`);

const all: Figure[] = [];
for (const claim of claims) {
  const figures = sizesFrom(values.nodes).flatMap((nodes) => {
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${claim.protocol}: ${claim.what}, N = ${nodes}`);
    return measured(claim, nodes) ?? [];
  });
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  if (values.json !== true) show(figures);
  all.push(...figures);
}
const wrong = all.filter(({ fits }) => !fits);
if (values.json === true) console.log(JSON.stringify(all));
else console.log(`\n${all.length - wrong.length} of ${all.length} figures fit their formula.`);
process.exitCode = wrong.length === 0 ? 0 : 1;
