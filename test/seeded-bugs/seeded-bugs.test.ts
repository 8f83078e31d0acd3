/**
 * The checker and the simulator find every seeded bug, and show it in a run that is hardly longer than the shortest.
 *
 * @module-tag long
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { explore } from "../../src/check/explore.ts";
import { Replayer } from "../../src/check/shrink/replay.ts";
import { type Adversity, endure } from "./adversity.ts";
import { bugs, type SeededBug } from "./bugs.ts";
import { type Catch, hunt } from "./hunt.ts";
import { findingOf, findingsOn, pages, type Row } from "./page.ts";
import { patched } from "./patch.ts";
import { type Setting, settings } from "./settings.ts";
import { withBug, withoutBug } from "./subjects.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = `${root}docs/seeded-bugs`;
/** All families' pages, one after the other. */
const written = (): string =>
  existsSync(folder)
    ? readdirSync(folder)
        .map((file) => readFileSync(`${folder}/${file}`, "utf8"))
        .join("\n")
    : "";
const OUTDATED = "what the pages of docs/seeded-bugs say; if the new finding is right, write the page anew as it tells";
const isWriting = process.env.COTERIE_WRITE_PAGE === "1";

const settingOf = ({ setting }: SeededBug): Setting => {
  const found = settings[setting];
  if (found === undefined) throw new Error(`there is no setting "${setting}"`);
  return found;
};

/** Whether it is looked for in virtual time, by a run that the checker cannot tell. */
const isEndured = ({ by, ...bug }: SeededBug): boolean =>
  by === "simulator" && settingOf({ by, ...bug }).adversity !== undefined;

/** Holds what was found to what it should be. Null of a run that goes round and round: it is not shrunk. */
function shortestOf({ path, options, property: name, goesRound }: Catch): number | null {
  if (goesRound) return null;
  const property = options.protocol.properties.find((each) => each.name === name)!;
  // Every move of it is possible, and the property is violated by the last and no sooner.
  expect(new Replayer(options, property).replay(path)).toEqual(path);
  const shortest = explore({ ...options, properties: [property] });
  expect(shortest.verdict).toBe("violated");
  expect(path.length).toBeLessThanOrEqual(1.5 * shortest.path.length);
  return shortest.path.length;
}

describe("seeded bugs", () => {
  const findings = isWriting ? new Map() : findingsOn(written());
  const rows: Row[] = [];

  it.each(bugs)("$protocol: $name", async (bug) => {
    const setting = settingOf(bug);
    const began = performance.now();
    const protocol = await withBug(bug);
    const found = isEndured(bug) ? endure(protocol, setting, setting.adversity!) : hunt(protocol, bug, setting);
    const seconds = (performance.now() - began) / 1_000;
    expect(found?.property).toBe(bug.property);
    if (found === null) return;
    const shortestLength = "path" in found ? shortestOf(found) : null;
    const shrunkLength = "path" in found ? found.path.length : found.shrunkLength;
    const row = { bug, effort: found.effort, seconds, foundLength: found.foundLength, shrunkLength, shortestLength };
    rows.push(row);
    if (!isWriting) expect(findings.get(bug.name), OUTDATED).toEqual(findingOf(row));
  });

  it("the pages list these bugs and no others", () => {
    if (!isWriting) expect(new Set(findings.keys()), OUTDATED).toEqual(new Set(bugs.map(({ name }) => name)));
    expect(new Set(bugs.map(({ name }) => name)).size).toBe(bugs.length);
    expect(bugs.length).toBeGreaterThanOrEqual(20);
  });

  afterAll(() => {
    if (!isWriting || rows.length < bugs.length) return;
    const before = written();
    mkdirSync(folder, { recursive: true });
    for (const [page, text] of pages(rows, before)) writeFileSync(`${root}${page}`, text);
  });
});

/** Runs without a bug never stop early, so they take the most time. A third of the seeds covers most seeds that find a bug. */
const fewer = (adversity: Adversity): Adversity => ({ ...adversity, seeds: Math.ceil(adversity.seeds / 3) });

describe("without the bug", () => {
  const once = new Map(bugs.map((bug) => [`${bug.protocol}, ${bug.setting}, ${bug.by}`, bug]));

  it.each([...once])("%s: nothing is found", async (_name, bug) => {
    const setting = settingOf(bug);
    const protocol = await withoutBug(bug);
    expect(
      isEndured(bug) ? endure(protocol, setting, fewer(setting.adversity!)) : hunt(protocol, bug, setting),
    ).toBeNull();
  });

  it("every setting is used", () => {
    expect(Object.keys(settings).filter((name) => !bugs.some(({ setting }) => setting === name))).toEqual([]);
  });
});

describe("a patch", () => {
  const bug: SeededBug = { ...bugs[0]!, name: "a bug", file: "a.ts", find: "a < b", replace: "a <= b" };

  it("changes the one place that it names", () => {
    expect(patched("if (a < b) c();", bug)).toBe("if (a <= b) c();");
  });

  it.each([
    ["if (a > b) c();", "found it 0 times: a < b"],
    ["if (a < b) c(a < b);", "found it 2 times: a < b"],
  ])("of a text that is not there exactly once is refused", (code, complaint) => {
    expect(() => patched(code, bug)).toThrow(complaint);
  });
});
