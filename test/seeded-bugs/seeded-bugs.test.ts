/**
 * Checks that the checker and the simulator find every seeded bug, and show it in a run hardly longer than the shortest
 * one.
 *
 * @module-tag long
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { explore } from "../../src/check/explore.ts";
import { Replayer } from "../../src/check/shrink/replay.ts";
import { type Adversity, endure, endureSeed } from "./adversity.ts";
import { bugs } from "./bugs.ts";
import { type Catch, hunt } from "./hunt.ts";
import { findingOf, findingsOn, pages, type Row } from "./page.ts";
import { patched } from "./patch.ts";
import type { SeededBug } from "./seeded-bug.ts";
import { type Setting, settings } from "./settings.ts";
import { withBug, withoutBug } from "./subjects.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = `${root}docs/internals/seeded-bugs`;
/** Returns the pages of all families, joined. */
const written = (): string =>
  existsSync(folder)
    ? readdirSync(folder)
        .map((file) => readFileSync(`${folder}/${file}`, "utf8"))
        .join("\n")
    : "";
const OUTDATED =
  "the pages of docs/internals/seeded-bugs differ; if the new finding is right, write the pages again with `npm run pages -- seeded-bugs`";
const isWriting = process.env.COTERIE_WRITE_PAGE === "1";

const settingOf = ({ setting }: SeededBug): Setting => {
  const found = settings[setting];
  if (found === undefined) throw new Error(`unknown setting "${setting}"`);
  return found;
};

/** Whether the search runs in virtual time, so that the checker cannot replay its run. */
const isEndured = ({ by, ...bug }: SeededBug): boolean =>
  by === "simulator" && settingOf({ by, ...bug }).adversity !== undefined;

/** Compares a shrunk run with the shortest one. Returns null for a run that loops forever, which is not shrunk. */
function shortestOf(
  { path, options, property: name, foundLength, goesRound }: Catch,
  { by }: SeededBug,
): number | null {
  if (goesRound) return null;
  const property = options.protocol.properties.find((each) => each.name === name)!;
  // Every move of the run must be possible, and the last one must be the first that violates the property.
  expect(new Replayer(options, property).replay(path)).toEqual(path);
  const shortest = by === "bfs" ? foundLength : explore({ ...options, properties: [property] }).path.length;
  expect(shortest).toBeGreaterThan(0);
  expect(path.length).toBeLessThanOrEqual(1.5 * shortest);
  return shortest;
}

const findings = isWriting ? new Map<string, never>() : findingsOn(written());
const seedOf = ({ name }: SeededBug): number => findings.get(name)?.seed ?? 1;

const rows: Row[] = [];

/** Searches from the first seed, shrinks the run, and compares it with the pages. */
async function search(bug: SeededBug): Promise<void> {
  const setting = settingOf(bug);
  const began = performance.now();
  const protocol = await withBug(bug);
  const found = isEndured(bug) ? endure(protocol, setting, setting.adversity!) : hunt(protocol, bug, setting);
  const seconds = (performance.now() - began) / 1_000;
  expect(found?.property).toBe(bug.property);
  if (found === null) return;
  const shortestLength = "path" in found ? shortestOf(found, bug) : null;
  const shrunkLength = "path" in found ? found.path.length : found.shrunkLength;
  const row = { bug, effort: found.effort, seconds, foundLength: found.foundLength, shrunkLength, shortestLength };
  rows.push(row);
  if (isWriting) return;
  expect(findings.get(bug.name), OUTDATED).toMatchObject(findingOf(row));
  if (bug.by === "simulator") expect(found.effort, OUTDATED).toBe(`seed ${seedOf(bug)}`);
}

const simulated = bugs.filter(({ by }) => by === "simulator");

describe("seeded bugs", () => {
  it.each(bugs.filter(({ by }) => by !== "simulator"))("$protocol: $name", search);

  it.skipIf(isWriting).each(simulated)("$protocol: $name, with its seed", async (bug) => {
    const setting = settingOf(bug);
    const protocol = await withBug(bug);
    const seed = seedOf(bug);
    const found = isEndured(bug)
      ? endureSeed(protocol, setting, setting.adversity!, seed)
      : hunt(protocol, bug, setting, { first: seed, count: 1 })?.property;
    expect(found, OUTDATED).toBe(bug.property);
  });

  it.each(simulated)("$protocol: $name, from the first seed", { tags: ["larger"] }, search);

  it("the pages list exactly these bugs", () => {
    if (!isWriting) expect(new Set(findings.keys()), OUTDATED).toEqual(new Set(bugs.map(({ name }) => name)));
    expect(new Set(bugs.map(({ name }) => name)).size).toBe(bugs.length);
    expect(bugs.length).toBeGreaterThanOrEqual(20);
  });

  afterAll(() => {
    if (!isWriting || rows.length < bugs.length) return;
    const before = written();
    const inOrder = bugs.map((bug) => rows.find((row) => row.bug === bug)!);
    mkdirSync(folder, { recursive: true });
    for (const [page, text] of pages(inOrder, before)) writeFileSync(`${root}${page}`, text);
  });
});

describe("without the bug", () => {
  const kindOf = ({ protocol, setting, by }: SeededBug): string => `${protocol}, ${setting}, ${by}`;
  const once = new Map(bugs.map((bug) => [kindOf(bug), bug]));

  /** Returns the depth of the runs that find the setting's bugs, unbounded if one of them loops forever. */
  const depthOf = (kind: string): number =>
    Math.max(
      ...bugs.filter((bug) => kindOf(bug) === kind).map(({ name }) => findings.get(name)?.shortestLength ?? Infinity),
    );

  it.each([...once])("%s: finds nothing up to the depth of its bugs", async (kind, bug) => {
    const setting = settingOf(bug);
    const protocol = await withoutBug(bug);
    if (bug.by === "bfs") {
      const maxDepth = Math.min(setting.maxDepth ?? Infinity, depthOf(kind));
      return expect(hunt(protocol, bug, { ...setting, ...(maxDepth < Infinity ? { maxDepth } : {}) })).toBeNull();
    }
    if (bug.by !== "simulator") return expect(hunt(protocol, bug, setting)).toBeNull();
    for (const seed of new Set(bugs.filter((each) => kindOf(each) === kind).map(seedOf))) {
      if (isEndured(bug)) expect(endureSeed(protocol, setting, setting.adversity!, seed)).toBeNull();
      else expect(hunt(protocol, bug, setting, { first: seed, count: 1 })).toBeNull();
    }
  });

  // Runs without a bug never stop early. A third of the seeds covers most seeds that find a bug.
  it.each([...once].filter(([, { by }]) => by === "bfs" || by === "simulator"))(
    "%s: finds nothing at all",
    {
      tags: ["larger"],
    },
    async (_kind, bug) => {
      const setting = settingOf(bug);
      const protocol = await withoutBug(bug);
      const fewer = ({ seeds, ...rest }: Adversity): Adversity => ({ ...rest, seeds: Math.ceil(seeds / 3) });
      expect(
        isEndured(bug) ? endure(protocol, setting, fewer(setting.adversity!)) : hunt(protocol, bug, setting),
      ).toBeNull();
    },
  );

  it("uses every setting", () => {
    expect(Object.keys(settings).filter((name) => !bugs.some(({ setting }) => setting === name))).toEqual([]);
  });
});

describe("a patch", () => {
  const bug: SeededBug = { ...bugs[0]!, name: "a bug", file: "a.ts", find: "a < b", replace: "a <= b" };

  it("changes only the named text", () => {
    expect(patched("if (a < b) c();", bug)).toBe("if (a <= b) c();");
  });

  it.each([
    ["if (a > b) c();", "found it 0 times: a < b"],
    ["if (a < b) c(a < b);", "found it 2 times: a < b"],
  ])("fails if the text does not occur exactly once", (code, complaint) => {
    expect(() => patched(code, bug)).toThrow(complaint);
  });
});
