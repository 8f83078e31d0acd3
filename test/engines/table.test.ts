/** The table of docs/engines.md: what each engine passes, by the suites that run. `COTERIE_WRITE_PAGE=1` writes it anew. */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { conformance } from "./conformance.ts";
import { exceptions } from "./exceptions.ts";
import { realEngines } from "./real/engines.ts";
import { outages } from "./real/outages.ts";

const file = fileURLToPath(new URL("../../docs/engines.md", import.meta.url));
const PLACE = /(?<=<!-- conformance -->\n\n).*?(?=\n\n<!-- \/conformance -->)/s;

/** Members and the simulated engine run the first suite; an engine away is tried in their own tests. */
const everywhere = ["members", "simulated"];

function table(): string {
  const engines = realEngines.map(({ name, title }) => ({ name, title }));
  const rows = [
    ...conformance.map(({ name }) => [
      name,
      ...everywhere.map((engine) => cell(engine, name)),
      ...engines.map((each) => cell(each.name, name)),
    ]),
    ...outages.map(({ name }) => [name, ...everywhere.map(() => "–"), ...engines.map((each) => cell(each.name, name))]),
  ];
  const head = ["", ...everywhere, ...engines.map(({ title }) => title)];
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function cell(engine: string, promise: string): string {
  const exception = exceptions.find((each) => each.engine === engine && each.promise === promise);
  return exception === undefined ? "passes" : exception.reason;
}

test("docs/engines.md says what each engine passes", () => {
  const page = readFileSync(file, "utf8");
  expect(page).toMatch(PLACE);
  const written = page.replace(PLACE, table());
  if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(file, written);
  expect(readFileSync(file, "utf8")).toBe(written);
});

test("exceptions are of promises and engines that there are", () => {
  const promises = [...conformance, ...outages].map(({ name }) => name);
  for (const { engine, promise } of exceptions) {
    expect(promises).toContain(promise);
    expect([...everywhere, ...realEngines.map(({ name }) => name)]).toContain(engine);
  }
});
