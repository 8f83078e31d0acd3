/** A whole cluster under random faults in virtual time, seed by seed; docs/testing.md says how ten thousand are run. */
import { appendFileSync } from "node:fs";
import { expect, test } from "vitest";
import { clusterSwarm, type SwarmSums } from "./cluster-swarm.ts";
import { releaseNamed } from "./upgrade.ts";

const FEW = [1, 9];
const MANY = "50";
/** So many seeds come to all that may happen. */
const ENOUGH = 50;
/** So many seeds has one number of `COTERIE_SWARM_BLOCK`: to load all and to compile what is hot takes as long as twenty. */
const BLOCK = 500;
/** Of so many that fail one reads; the others are of the same kind, as a rule. */
const MAX_FAILURES = 5;

const {
  COTERIE_SEED: replayed,
  COTERIE_SWARM: wanted,
  COTERIE_SWARM_BLOCK: block,
  COTERIE_SWARM_LOG: log,
} = process.env;

const seedsFrom = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, at) => first + at);

/** `50`: the first 50; `61-160`: those. */
function seedsIn(text: string): number[] {
  const [from, to] = text.split("-").map(Number) as [number, number | undefined];
  return to === undefined ? seedsFrom(1, from) : seedsFrom(from, to);
}
const many = block ? seedsFrom((Number(block) - 1) * BLOCK + 1, Number(block) * BLOCK) : seedsIn(wanted ?? MANY);

/** In milliseconds of the world, of which the most counts. */
const isLongest = (name: string): boolean => name.endsWith("Ms");

async function underSeeds(seeds: readonly number[], later: string, failures: string[]): Promise<SwarmSums> {
  const releases = { present: await releaseNamed("present"), later: await releaseNamed(later) };
  const sums: SwarmSums = {};
  for (const seed of seeds) {
    if (failures.length >= MAX_FAILURES) break;
    const found = await clusterSwarm({ seed, ...releases }).catch((error: unknown) => {
      failures.push((error as Error).message);
      return {};
    });
    for (const [name, count] of Object.entries(found)) {
      const before = sums[name] ?? 0;
      sums[name] = isLongest(name) ? Math.max(before, Math.round(count)) : before + count;
    }
  }
  return sums;
}

/** What the checker could not decide is not known to be right. */
function requireSound(failures: readonly string[], { unknown = 0 }: SwarmSums): void {
  expect(failures.join("\n\n")).toBe("");
  expect(unknown, "objects that were not decided").toBe(0);
}

test("histories are linearizable, watches whole, grants exclusive and sessions kept, whatever fails, changes and is upgraded", async () => {
  const failures: string[] = [];
  requireSound(failures, await underSeeds(replayed === undefined ? FEW : [Number(replayed)], "later", failures));
});

test.skipIf(replayed !== undefined)(
  "so under many seeds, which come to all that may happen",
  { tags: ["long"], timeout: 7_200_000 },
  async () => {
    const failures: string[] = [];
    const began = performance.now();
    const sums = await underSeeds(many, "later", failures);
    const seconds = ((performance.now() - began) / 1_000 / many.length).toFixed(2);
    const line = `seeds ${many[0]} to ${many.at(-1)}, ${seconds} s each: ${JSON.stringify(sums)}`;
    console.info(line);
    if (log) appendFileSync(log, `${[line, ...failures].join("\n")}\n`);
    requireSound(failures, sums);
    const reached = Object.keys(sums).filter((name) => sums[name] !== 0 || name === "unknown");
    if (many.length >= ENOUGH) expect(reached).toEqual(Object.keys(sums));
  },
);

test.skipIf(replayed !== undefined)(
  "a release whose commands mean something else, and that does not say so, is found out",
  { tags: ["long"], timeout: 600_000 },
  async () => {
    const failures: string[] = [];
    for (const seed of seedsIn(MANY)) {
      await underSeeds([seed], "careless", failures);
      if (failures.length > 0) break;
    }
    expect(failures[0]).toMatch(/Replay: COTERIE_SEED=\d+ npx vitest run/);
  },
);
