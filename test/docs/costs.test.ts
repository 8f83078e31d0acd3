/**
 * Checks the cost tables on the protocols' pages: the measurements of `coterie bench table`, for a few N. The largest N
 * takes longer than all others, so it is checked by `npm run test:random`. `npm run pages -- costs` writes the tables.
 *
 * @module-tag long
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { type Cost, measured, span } from "../../bench/table/cost.ts";
import { electionCosts } from "../../bench/table/election.ts";
import { multicastCosts } from "../../bench/table/multicast.ts";
import { mutexCosts } from "../../bench/table/mutex.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const SIZES = [3, 7, 16, 64];
const SMALL = SIZES.slice(0, -1);
const isWriting = process.env.COTERIE_WRITE_PAGE === "1";

const BEGIN = "<!-- measured -->\n";
const END = "<!-- end -->\n";

const costs = [...mutexCosts, ...electionCosts, ...multicastCosts];
const baseOf = ({ protocol }: Cost): string => protocol.split(",")[0] as string;
const names = [...new Set(costs.map(baseOf))];

function rowOf(cost: Cost, sizes: readonly number[]): string {
  const cells = sizes.map((nodes) => {
    const figure = measured(cost, nodes);
    if (figure === null) return "";
    return figure.fits ? span(figure.measured) : `**${span(figure.measured)}**`;
  });
  const [, variant] = cost.protocol.split(", ");
  const what = variant === undefined ? cost.what : `${variant}: ${cost.what}`;
  return `| ${[what, cost.unit, cost.formula, ...cells].join(" | ")} |\n`;
}

function tableOf(name: string, sizes = SIZES): string {
  const head = `| measured | in | formula | ${sizes.map((nodes) => `N = ${nodes}`).join(" | ")} |\n|---|---|---|${"---|".repeat(sizes.length)}\n`;
  return `${head}${costs
    .filter((cost) => baseOf(cost) === name)
    .map((cost) => rowOf(cost, sizes))
    .join("")}`;
}

/** Removes the last column of a table. */
const withoutLast = (table: string | null): string | undefined => table?.replaceAll(/[^|\n]*\|$/gm, "");

/** Returns the page with the costs of a protocol, if it has its own. */
function pageOf(name: string): string {
  const page = join(root, `docs/learn/protocols/${name}.md`);
  const deeper = join(root, `docs/internals/protocols/${name}-costs.md`);
  return existsSync(deeper) ? deeper : page;
}

/** Returns the text between the marks, or null without marks or page. */
function shownOn(name: string): string | null {
  if (!existsSync(pageOf(name))) return null;
  const text = readFileSync(pageOf(name), "utf8");
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END, begin);
  return begin < 0 || end < 0 ? null : text.slice(begin + BEGIN.length, end);
}

if (isWriting)
  for (const name of names) {
    const shown = shownOn(name);
    if (shown === null) continue;
    const text = readFileSync(pageOf(name), "utf8");
    writeFileSync(pageOf(name), text.replace(`${BEGIN}${shown}${END}`, `${BEGIN}${tableOf(name)}${END}`));
  }

describe("costs on the protocols' pages", () => {
  test.each(names)("%s: measurements are up to date, and match the formula", (name) => {
    const table = tableOf(name, SMALL);
    expect(withoutLast(shownOn(name))).toBe(table);
    expect(table).not.toContain("**");
  });

  test.each(names)("%s: the same for every N of the table", { tags: ["larger"] }, (name) => {
    const table = tableOf(name);
    expect(shownOn(name)).toBe(table);
    expect(table).not.toContain("**");
  });
});
