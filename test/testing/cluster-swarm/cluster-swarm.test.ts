/**
 * Runs a whole cluster under random faults in virtual time, seed by seed. docs/guide/testing.md explains how to run ten
 * thousand seeds.
 */
import { expect, test } from "vitest";
import { firstSeed } from "../../random-seeds.ts";
import { clusterSwarm, type SwarmSums } from "./cluster-swarm.ts";
import { releaseNamed } from "./upgrade.ts";

const FEW = [1, 9];
/** Together these seeds reach every fault, change and upgrade that a run counts. */
const REACHING_ALL = [4, 25, 26];
/** The first seed that distinguishes the careless release from a correct one, and a seed before it. */
const CARELESS = [1, 2];
/** If more seeds fail, they usually fail for the same reason. */
const MAX_FAILURES = 5;

const { COTERIE_SEED: replayed, COTERIE_SEEDS: count } = process.env;

/** Whether a sum is a time, in milliseconds of virtual time. Times are combined by their maximum. */
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

/** Expects no failures, and no history that the checker could not decide. */
function requireSound(failures: readonly string[], { unknown = 0 }: SwarmSums): void {
  expect(failures.join("\n\n")).toBe("");
  expect(unknown, "objects that were not decided").toBe(0);
}

test("histories are linearizable, watches complete, grants exclusive and sessions kept under faults and upgrades", async () => {
  const failures: string[] = [];
  requireSound(failures, await underSeeds(replayed === undefined ? FEW : [Number(replayed)], "later", failures));
});

test.skipIf(replayed !== undefined)(
  "the same under seeds that reach all kinds of events",
  { tags: ["long"] },
  async () => {
    const failures: string[] = [];
    const sums = await underSeeds(REACHING_ALL, "later", failures);
    requireSound(failures, sums);
    expect(Object.keys(sums).filter((name) => sums[name] === 0)).toEqual(["unknown"]);
  },
);

test.skipIf(replayed !== undefined)(
  "the same for the number of seeds in COTERIE_SEEDS",
  { tags: ["larger"] },
  async () => {
    const failures: string[] = [];
    const began = performance.now();
    const seeds = Array.from({ length: Number(count) }, (_, at) => firstSeed() + at);
    const sums = await underSeeds(seeds, "later", failures);
    const seconds = ((performance.now() - began) / 1_000 / seeds.length).toFixed(2);
    console.info(`seeds ${seeds[0]} to ${seeds.at(-1)}, ${seconds} s each: ${JSON.stringify(sums)}`);
    requireSound(failures, sums);
  },
);

test.skipIf(replayed !== undefined)(
  "detects a release that changes the meaning of commands without declaring it",
  { tags: ["long"] },
  async () => {
    const failures: string[] = [];
    await underSeeds(CARELESS, "careless", failures);
    expect(failures[0]).toMatch(/Replay: COTERIE_SEED=\d+ npx vitest run/);
  },
);
