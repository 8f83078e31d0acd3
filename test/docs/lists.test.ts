/**
 * Lists of algorithms on pages that people write: README.md has a row for each family, made from the registry.
 * `npm run pages -- lists` writes it anew.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { families } from "../../src/cli/skeleton.ts";
import { protocolNamed, protocolNames } from "../../src/protocols/index.ts";

const file = fileURLToPath(new URL("../../README.md", import.meta.url));
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
