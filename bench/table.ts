/**
 * Compares each algorithm's measured cost with its formula: the registry's own protocols in the simulator, with links
 * that take one unit of time.
 *
 *     npx coterie bench table mutex|election|multicast|consensus [--nodes 3,7] [--json]
 */
import { commandLine, progress } from "./command-line.ts";
import { printTable } from "./results.ts";
import { consensusCosts } from "./table/consensus.ts";
import { type Cost, measured, span } from "./table/cost.ts";
import { electionCosts } from "./table/election.ts";
import { multicastCosts } from "./table/multicast.ts";
import { mutexCosts } from "./table/mutex.ts";

const tables: ReadonlyMap<string, readonly Cost[]> = new Map([
  ["mutex", mutexCosts],
  ["election", electionCosts],
  ["multicast", multicastCosts],
  ["consensus", consensusCosts],
]);
const MAX_NODES = 10_000;

const { values, positionals, refuse, wholes } = commandLine(
  "table",
  {
    nodes: { such: "3,7,16", default: "3,7,16,64", help: "how many nodes (default: 3,7,16,64)" },
    json: { help: "one object for each figure, as a list" },
  },
  { positionals: "mutex|election|multicast|consensus" },
);
const [name = "nothing"] = positionals;
const costs =
  tables.get(name) ?? refuse(`expected one of ${[...tables.keys()].join(", ")}, got ${positionals.join(" ") || name}`);
const sizes = wholes("nodes", values.nodes, 3, MAX_NODES);

const rows = costs.map((cost) => {
  const figures = sizes.map((nodes) => {
    progress(`${cost.protocol}: ${cost.what}, N = ${nodes}`);
    return measured(cost, nodes);
  });
  return { cost, figures };
});
progress("");
const all = rows.flatMap(({ figures }) => figures.flatMap((figure) => figure ?? []));
const wrong = all.filter(({ fits }) => !fits);
if (values.json) console.log(JSON.stringify(all));
else {
  for (const protocol of new Set(costs.map((cost) => cost.protocol))) {
    const own = rows.filter(({ cost }) => cost.protocol === protocol);
    printTable([
      [protocol, "formula", ...sizes.map((nodes) => `N = ${nodes}`)],
      ...own.map(({ cost: { what, unit, formula }, figures }) => [
        `  ${what}, ${unit}`,
        formula,
        ...figures.map((figure) => (figure === null ? "" : `${span(figure.measured)}${figure.fits ? "" : " ✗"}`)),
      ]),
    ]);
  }
  console.log(`\n${all.length - wrong.length} of ${all.length} figures fit their formula.`);
}
process.exitCode = wrong.length === 0 ? 0 : 1;
