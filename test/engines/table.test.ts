/** The table of docs/reference/engines.md, generated from the lists of the suites. `COTERIE_WRITE_PAGE=1` writes it. */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { conformance } from "./conformance.ts";
import { exceptions } from "./exceptions.ts";
import { outages } from "./outages.ts";
import { realEngines } from "./real/engines.ts";
import { restores } from "./restores.ts";

const file = fileURLToPath(new URL("../../docs/reference/engines.md", import.meta.url));
const PLACE = /(?<=<!-- conformance -->\n\n).*?(?=\n\n<!-- \/conformance -->)/s;

const columns = [
  { name: "members", title: "members" },
  { name: "simulated", title: "simulated" },
  ...realEngines.map(({ name, title }) => ({ name, title })),
];
const tried = [...conformance, ...outages, ...restores];

function table(): string {
  const rows = tried.map(({ name }) => [name, ...columns.map((each) => cell(each.name, name))]);
  const head = ["Guarantee", ...columns.map(({ title }) => title)];
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function cell(engine: string, promise: string): string {
  const exception = exceptions.find((each) => each.engine === engine && each.promise === promise);
  return exception === undefined ? "passes" : exception.reason;
}

test("docs/reference/engines.md lists the guarantees of each engine", () => {
  const page = readFileSync(file, "utf8");
  expect(page).toMatch(PLACE);
  const written = page.replace(PLACE, table());
  if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(file, written);
  expect(readFileSync(file, "utf8")).toBe(written);
});

test("exceptions refer to existing tests and engines", () => {
  for (const { engine, promise } of exceptions) {
    expect(tried.map(({ name }) => name)).toContain(promise);
    expect(columns.map(({ name }) => name)).toContain(engine);
  }
});
