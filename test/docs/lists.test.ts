/**
 * Checks lists on hand-written pages. README.md has a row for each family, generated from the registry.
 * docs/learn/algorithms.md has a row for each algorithm, generated from its header if it is new. docs/learn/tours.md
 * has a row for each tour of the laboratory. `npm run pages -- lists` writes them.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { families } from "../../src/cli/new-algorithm.ts";
import { protocolNamed, protocolNames } from "../../src/protocols/index.ts";
import { tours } from "../../studio/src/laboratory/tours/tours.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const END = "<!-- end -->\n";

/** Checks the list between its marks on a page, and writes it on request. */
function holdsList(page: string, begin: string, list: string): void {
  const file = `${root}${page}`;
  const text = readFileSync(file, "utf8");
  const [from, to] = [text.indexOf(begin), text.indexOf(END)];
  expect(from).toBeGreaterThan(0);
  expect(to).toBeGreaterThan(from);
  if (process.env.COTERIE_WRITE_PAGE === "1")
    writeFileSync(file, `${text.slice(0, from)}${begin}${list}${text.slice(to)}`);
  expect(readFileSync(file, "utf8")).toContain(`${begin}${list}${END}`);
}

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
    const links = own.map((name) => `[\`${name}\`](docs/learn/protocols/${name}.md)`).join(", ");
    return `| [${titles[folder]}](docs/learn/families/${folder}.md) | ${links} |\n`;
  });
  return `| family | algorithms |\n|---|---|\n${rows.join("")}`;
}

test("README.md lists every algorithm of the registry, by family", () => {
  holdsList("README.md", "<!-- algorithms -->\n", list());
});

test("docs/learn/tours.md lists every tour of the laboratory, with the protocols of its runs", () => {
  const texts = JSON.parse(readFileSync(`${root}studio/src/laboratory/tours/texts.json`, "utf8"));
  const protocolOf = (scenario: string): string =>
    /^protocol: *(\S+)/m.exec(readFileSync(`${root}scenarios/${scenario}.yaml`, "utf8"))?.[1] ?? "";
  const rows = tours.map(({ name, runs }) => {
    const protocols = runs.map(({ scenario, protocol }) => protocol ?? protocolOf(scenario ?? ""));
    const links = [...new Set(protocols)].map((each) => `[\`${each}\`](protocols/${each}.md)`).join(", ");
    return `| **${texts[`${name}.title`]}** | ${texts[`${name}.about`]} | ${links} | \`#/tour?tour=${name}\` |\n`;
  });
  holdsList(
    "docs/learn/tours.md",
    "<!-- tours -->\n",
    `| tour | what it shows | algorithms | link |\n|---|---|---|---|\n${rows.join("")}`,
  );
});

/**
 * Returns a header's text for a keyword, up to the end of its first sentence. Sentences may begin with names such as
 * ME1.
 */
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

test("docs/learn/algorithms.md: no row is still as `coterie new` wrote it", () => {
  const page = `${root}docs/learn/algorithms.md`;
  const generic = /^\| \[`([^`]+)`\].*\| what it guarantees \| what it assumes \| what it costs \|$/gm;
  if (process.env.COTERIE_WRITE_PAGE === "1")
    writeFileSync(
      page,
      readFileSync(page, "utf8").replaceAll(generic, (_row, name: string) => rowOf(name)),
    );
  expect(readFileSync(page, "utf8").match(generic)).toBeNull();
});

test("a row contains the first sentences of the header", () => {
  expect(rowOf("raymond")).toBe(
    "| [`raymond`](protocols/raymond.md) | on a tree, requests travel toward the token, which returns along the same path | at most one node is inside; every request is granted | no crashes; reliable links, in any order; no node stays inside forever | 2d messages per entry, where d is the distance to the privilege: none at the node that has it, and twice the diameter at worst |",
  );
});
