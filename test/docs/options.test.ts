/**
 * Checks that the tables of options on the pages of protocols match the algorithms' declarations. `npm run pages --
 * options` writes them.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { protocolNamed, protocolNames } from "../../src/protocols/index.ts";
import { type DeclaredOption, declaredOptions, rangeText } from "../../src/protocols/options.ts";
import { pages, root } from "./markdown.ts";

/** Matches marks such as `<!-- options: raft part=log -->`, with `variant=NAME` for a form of the algorithm. */
const TABLE = /(<!-- options: (\S+)(?: part=(\S+))?(?: variant=(\S+))? -->\n)(.*?)(<!-- end -->)/gs;

function tableOf(protocol: string, part = "", variant = ""): string {
  const { model, variants } = protocolNamed(protocol);
  const make = variants[variant]?.model ?? model;
  const rows = declaredOptions(make as (options?: object) => unknown)
    .filter(({ path }) => path.join(".") === part)
    .map((each) => `| \`${each.name}\` | ${defaultText(each)} | ${meaning(each)} |\n`);
  const head = part === "" ? "option" : `option of \`${part}\``;
  return `| ${head} | default | what it sets |\n|---|---|---|\n${rows.join("")}`;
}

const defaultText = ({ default: preset }: DeclaredOption): string =>
  typeof preset === "number"
    ? preset.toLocaleString("en-US")
    : `\`${typeof preset === "string" ? preset : JSON.stringify(preset)}\``;

/** Returns the meaning of an option, with the values of a choice, or the bounds of a number if they are not obvious. */
function meaning({ shape, range, help }: DeclaredOption): string {
  if (shape.kind === "oneOf") return `${shape.values.map((value) => `\`${value}\``).join(" or ")}: ${help}`;
  const isObvious = range.max === undefined && range.below === undefined;
  return isObvious ? help : `${help}; ${rangeText({ shape, range })}`;
}

const written = (text: string): string =>
  text.replaceAll(
    TABLE,
    (_all, begin: string, protocol: string, part?: string, variant?: string, _old?: string, end?: string) =>
      [begin, tableOf(protocol, part, variant), end].join(""),
  );

const texts = pages.map((page) => ({ page, text: readFileSync(join(root, page), "utf8") }));
const withTables = texts.filter(({ text }) => text.search(TABLE) >= 0);

test.each(withTables)("$page lists the options that the algorithm declares", ({ page, text }) => {
  if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(join(root, page), written(text));
  expect(readFileSync(join(root, page), "utf8")).toBe(written(text));
});

/** Parts of every algorithm of a family, documented on the page of the family or of another protocol. */
const SHARED = new Set(["workload", "client", "machine", "detector"]);

test("every algorithm with options of its own has a table of them", () => {
  const marked = new Set(withTables.flatMap(({ text }) => [...text.matchAll(TABLE)].map(([, , protocol]) => protocol)));
  const missing = protocolNames.filter(
    (name) =>
      declaredOptions(protocolNamed(name).model as (options?: object) => unknown).some(
        ({ path }) => !SHARED.has(path.join(".")),
      ) && !marked.has(name),
  );
  expect(missing).toEqual([]);
});
