/**
 * Lists of algorithms on pages that people write: README.md has a row for each family, made from the registry, and a new
 * algorithm's row in docs/algorithms.md is made from its header. `npm run pages -- lists` writes them.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { families } from "../../src/cli/skeleton.ts";
import { protocolNamed, protocolNames } from "../../src/protocols/index.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const file = `${root}README.md`;
const [BEGIN, END] = ["<!-- algorithms -->\n", "<!-- end -->\n"];

const titles: Readonly<Record<(typeof families)[number], string>> = {
  election: "election",
  mutex: "mutual exclusion",
  multicast: "multicast",
  consensus: "consensus",
  membership: "membership",
};

function list(): string {
  const rows = families.map((folder) => {
    const own = protocolNames.filter((name) => protocolNamed(name).family.name === titles[folder]).sort();
    const links = own.map((name) => `[\`${name}\`](docs/protocols/${name}.md)`).join(", ");
    return `| [${titles[folder]}](docs/families/${folder}.md) | ${links} |\n`;
  });
  return `| family | algorithms |\n|---|---|\n${rows.join("")}`;
}

test("README.md lists every algorithm of the registry, by family", () => {
  const text = readFileSync(file, "utf8");
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  expect(begin).toBeGreaterThan(0);
  expect(end).toBeGreaterThan(begin);
  if (process.env.COTERIE_WRITE_PAGE === "1")
    writeFileSync(file, `${text.slice(0, begin)}${BEGIN}${list()}${text.slice(end)}`);
  expect(readFileSync(file, "utf8")).toContain(`${BEGIN}${list()}${END}`);
});

/** What a header says under a word, up to the end of its first sentence; sentences have names such as ME1 in front. */
function saidUnder(word: string, header: string): string {
  const text = new RegExp(`^ \\* ${word} {2,}(.*(?:\\n \\* {4,}.*)*)`, "m").exec(header)?.[1] ?? "";
  const [first = ""] = text.replaceAll(/\n \* +/g, " ").split(/(?<=\.)\s/);
  return first.replace(/^[A-Z]+\d: /, "").replace(/\.$/, "");
}

function rowOf(name: string): string {
  const family = families.find((folder) => titles[folder] === protocolNamed(name).family.name);
  const path = [`${name}.ts`, `${name}/${name}.ts`]
    .map((each) => `${root}src/protocols/${family}/${each}`)
    .find(existsSync);
  const header = readFileSync(path as string, "utf8");
  const [assumes, safety, liveness, cost] = ["Assumes", "Safety", "Liveness", "Cost"].map((word) =>
    saidUnder(word, header),
  );
  return `| [\`${name}\`](protocols/${name}.md) | ${protocolNamed(name).summary} | ${safety}; ${liveness} | ${assumes} | ${cost} |`;
}

test("docs/algorithms.md: no row is as `coterie new` wrote it", () => {
  const page = `${root}docs/algorithms.md`;
  const generic = /^\| \[`([^`]+)`\].*\| what it guarantees \| what it assumes \| what it costs \|$/gm;
  if (process.env.COTERIE_WRITE_PAGE === "1")
    writeFileSync(
      page,
      readFileSync(page, "utf8").replaceAll(generic, (_row, name: string) => rowOf(name)),
    );
  expect(readFileSync(page, "utf8").match(generic)).toBeNull();
});

test("a row is what the header says first", () => {
  expect(rowOf("raymond")).toBe(
    "| [`raymond`](protocols/raymond.md) | on a tree, requests go towards the one token, and it comes back the same way | at most one node is inside; every request is granted | no crashes; reliable links, in any order; a node that is inside leaves | 2d messages per entry, d the distance to the privilege: none where it is, twice the diameter at worst |",
  );
});
