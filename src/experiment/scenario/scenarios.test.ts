/** Runs the files of `scenarios/`: the worked examples of the book, and runs that break its algorithms. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { equal } from "../../core/plain.ts";
import { protocolNames } from "../../protocols/index.ts";
import { logLine } from "../../trace/log.ts";
import { asVariant, jsonSchema, parseScenario, runScenario } from "./index.ts";

const folder = fileURLToPath(new URL("../../../scenarios/", import.meta.url));
const files = readdirSync(folder).filter((file) => file.endsWith(".yaml"));
const read = (file: string): string => readFileSync(`${folder}${file}`, "utf8");

function played(file: string) {
  const { scenario, place } = parseScenario(read(file), file);
  const story: string[] = [];
  const result = runScenario(scenario, { place, trace: (entry) => story.push(logLine(entry)) });
  return { scenario, result, story };
}

describe("scenarios/", () => {
  it("has at least one file for each protocol", () => {
    const shown = new Set(files.map((file) => parseScenario(read(file), file).scenario.protocol));
    expect(protocolNames.filter((name) => !shown.has(name))).toEqual([]);
  });

  it.each(files)("%s meets its expectations", (file) => {
    const { scenario, result } = played(file);
    expect(result.expectations.filter(({ passed }) => !passed)).toEqual([]);
    // Each scenario has an expectation in addition to `violated`.
    expect(Object.keys(scenario.expect).length).toBeGreaterThan(1);
    expect(scenario.about).not.toBe("");
  });

  it.each(files)("%s meets its expectations under its variants", (file) => {
    const { scenario } = parseScenario(read(file), file);
    for (const name of Object.keys(scenario.variants)) {
      const { expectations } = runScenario(asVariant(scenario, name));
      expect([name, expectations.filter(({ passed }) => !passed)]).toEqual([name, []]);
      expect(expectations.length).toBeGreaterThan(1);
    }
  });

  const comesOutTheSame = (file: string): void => {
    const { scenario, story, result } = played(file);
    expect(played(file).story).toEqual(story);
    expect(runScenario(scenario)).toEqual(result);
  };
  const [some, rest] = [0, 1].map((part) => files.filter((_, at) => Number(at % 10 > 0) === part)) as [
    string[],
    string[],
  ];
  it.each(some)("%s gives the same result each time, with and without a trace", comesOutTheSame);
  it.each(rest)("%s gives the same result each time, with and without a trace", { tags: ["long"] }, comesOutTheSame);

  it.each(files)("%s names its schema for editors", (file) => {
    expect(read(file).split("\n")[0]).toBe("# yaml-language-server: $schema=./scenario.schema.json");
  });

  it("has an example in docs/verify/scenarios.md that meets its expectations", () => {
    const page = readFileSync(`${folder}../docs/verify/scenarios.md`, "utf8");
    const blocks = [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text]) => text as string);
    const whole = blocks.filter((text) => /^name:/m.test(text));
    expect(whole).toHaveLength(1);
    for (const text of whole) {
      const { expectations } = runScenario(parseScenario(text, "docs/verify/scenarios.md").scenario);
      expect(expectations.map(({ passed }) => passed)).toEqual([true, true]);
    }
    const conditions = blocks.filter((text) => /^when:/m.test(text)).flatMap((text) => text.trim().split("\n"));
    expect(conditions).toHaveLength(5);
    for (const condition of conditions) {
      const steps = `steps: [{ ${condition.replace(/ +#.*/, "")}, crash: 0 }]`;
      expect(() => parseScenario(`name: x\nprotocol: bully\nnodes: 8\n${steps}`, "x.yaml")).not.toThrow();
    }
  });

  it("scenario.schema.json matches the schema in the code (to update: npm run pages -- scenarios)", () => {
    const file = `${folder}scenario.schema.json`;
    const schema = jsonSchema();
    if (process.env.COTERIE_WRITE_PAGE === "1" && !equal(JSON.parse(readFileSync(file, "utf8")), schema)) {
      writeFileSync(file, `${JSON.stringify(schema, null, 2)}\n`);
      execFileSync("npx", ["biome", "format", "--write", file]);
    }
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(JSON.parse(JSON.stringify(schema)));
  });
});
