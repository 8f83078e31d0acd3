/**
 * Checks that the pictures on the protocols' pages are up to date. Each is drawn from a scenario that the page names.
 * `npm run pages -- pictures` draws them.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { cast, labelled, parseScenario, runScenario } from "../../src/experiment/scenario/index.ts";
import { protocolNames } from "../../src/protocols/index.ts";
import { drawnAs } from "../../src/protocols/message-inks.ts";
import type { TraceEntry, TraceHeader } from "../../src/trace/entry.ts";
import { excerptOf, type Selection } from "../../src/trace/excerpt.ts";
import { drawSvg } from "../../src/trace/picture/svg.ts";
import { vectorClocks } from "../../src/trace/steps.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const pages = "docs/learn/protocols";
const images = "docs/images/protocols";
const isWriting = process.env.COTERIE_WRITE_PAGE === "1";

/** Matches `<!-- picture: scenarios/NAME.yaml to=100 hide=alive,beat -->` and the picture below it. */
const MARK =
  /^<!-- picture: (?<scenario>scenarios\/\S+\.yaml)(?<words>(?: \S+=\S+)*) -->\n(?<shown>!\[[^\]]*\]\([^)]*\)\n)?/gm;

interface Mark {
  readonly page: string;
  readonly scenario: string;
  readonly selection: Selection;
  /** The line below the mark. */
  readonly shown: string;
}

const textOf = (file: string): string => readFileSync(join(root, file), "utf8");
const nameOf = (scenario: string): string => basename(scenario, ".yaml");
const imageOf = (scenario: string): string => `${images}/${nameOf(scenario)}.svg`;
const titleOf = (scenario: string): string => parseScenario(textOf(scenario), scenario).scenario.name;
const lineOf = (scenario: string): string =>
  `![${titleOf(scenario)}](../../images/protocols/${nameOf(scenario)}.svg)\n`;

function marksOf(page: string): Mark[] {
  return [...textOf(page).matchAll(MARK)].map(({ groups }) => {
    const { scenario = "", words = "", shown = "" } = groups ?? {};
    return { page, scenario, selection: selectionOf(words), shown };
  });
}

function selectionOf(words: string): Selection {
  const given = Object.fromEntries(
    words
      .trim()
      .split(" ")
      .map((word) => word.split("=")),
  );
  return {
    ...("from" in given ? { from: Number(given.from) } : {}),
    ...("to" in given ? { to: Number(given.to) } : {}),
    ...("hide" in given ? { hide: String(given.hide).split(",") } : {}),
  };
}

function drawn({ scenario: file, selection }: Mark): string {
  const { scenario, place } = parseScenario(textOf(file), file);
  const entries: TraceEntry[] = [];
  runScenario(scenario, { place, trace: (entry) => entries.push(entry) });
  const { ids, options } = cast(scenario);
  const header: TraceHeader = {
    kind: "trace",
    version: 1,
    madeBy: "simulator",
    protocol: scenario.protocol,
    form: "model",
    variant: scenario.variant ?? null,
    options,
    nodes: ids.toSorted((a, b) => a - b),
    seed: scenario.seed,
    violation: null,
  };
  const named = labelled(entries, scenario);
  const excerpt = excerptOf({ header, entries: named, clocks: vectorClocks(entries) }, selection);
  return drawSvg(excerpt, drawnAs(scenario.protocol));
}

const files = readdirSync(join(root, pages))
  .filter((file) => file.endsWith(".md")) // Pages in subfolders have no pictures of scenarios.
  .map((file) => `${pages}/${file}`);
const marks = files.flatMap(marksOf);

if (isWriting) {
  mkdirSync(join(root, images), { recursive: true });
  for (const mark of marks) writeFileSync(join(root, imageOf(mark.scenario)), drawn(mark));
  for (const page of files) {
    const text = textOf(page);
    const anew = text.replaceAll(
      MARK,
      (whole, scenario: string, _words, shown = "") =>
        `${whole.slice(0, whole.length - shown.length)}${lineOf(scenario)}`,
    );
    if (anew !== text) writeFileSync(join(root, page), anew);
  }
}

describe("pictures on the protocols' pages", () => {
  test.each(protocolNames)("%s has a worked example as a picture", (name) => {
    expect(marksOf(`${pages}/${name}.md`)).not.toEqual([]);
  });

  test.each(marks)("$page: $scenario is up to date", (mark) => {
    const [shown] = marksOf(mark.page).filter(({ scenario }) => scenario === mark.scenario);
    expect(shown?.shown).toBe(lineOf(mark.scenario));
    expect(existsSync(join(root, imageOf(mark.scenario)))).toBe(true);
    expect(textOf(imageOf(mark.scenario))).toBe(drawn(mark));
  });

  test("no other pictures exist", () => {
    const wanted = new Set(marks.map(({ scenario }) => basename(imageOf(scenario))));
    expect(readdirSync(dirname(join(root, imageOf("x.yaml")))).filter((file) => !wanted.has(file))).toEqual([]);
  });
});
