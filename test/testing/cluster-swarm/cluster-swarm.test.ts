/** A whole cluster under random faults in virtual time, seed by seed; docs/testing.md says how ten thousand are run. */
import { expect, test } from "vitest";
import { clusterSwarm, type SwarmSums } from "./cluster-swarm.ts";
import { releaseNamed } from "./upgrade.ts";

const FEW = [3, 9];
const MANY = 80;
/** So many seeds have one number of `COTERIE_SWARM_BLOCK`. */
const BLOCK = 100;

const { COTERIE_SEED: replayed, COTERIE_SWARM: upTo, COTERIE_SWARM_BLOCK: block } = process.env;

const seedsFrom = (first: number, count: number): number[] => Array.from({ length: count }, (_, at) => first + at);
const many = block ? seedsFrom((Number(block) - 1) * BLOCK + 1, BLOCK) : seedsFrom(1, Number(upTo ?? MANY));

/** What may be none of. */
const mayBeNone = ["unknown"];
/** In milliseconds of the world, of which the most counts. */
const isLongest = (name: string): boolean => name.endsWith("Ms");

async function underSeeds(seeds: readonly number[], later: string): Promise<SwarmSums> {
  const releases = { present: await releaseNamed("present"), later: await releaseNamed(later) };
  const sums: SwarmSums = {};
  for (const seed of seeds)
    for (const [name, count] of Object.entries(await clusterSwarm({ seed, ...releases }))) {
      const before = sums[name] ?? 0;
      sums[name] = isLongest(name) ? Math.max(before, Math.round(count)) : before + count;
    }
  return sums;
}

test("histories are linearizable, watches whole, grants exclusive and sessions kept, whatever fails, changes and is upgraded", async () => {
  const { unknown } = await underSeeds(replayed === undefined ? FEW : [Number(replayed)], "later");
  expect(unknown).toBe(0);
});

test.skipIf(replayed !== undefined)(
  "so under many seeds, which come to all that may happen",
  { tags: ["long"], timeout: 3_600_000 },
  async () => {
    const began = performance.now();
    const sums = await underSeeds(many, "later");
    const seconds = ((performance.now() - began) / 1_000 / many.length).toFixed(2);
    console.info(`seeds ${many[0]} to ${many.at(-1)}, ${seconds} s each: ${JSON.stringify(sums)}`);
    expect(sums.unknown, "what the checker could not decide is not known to be right").toBe(0);
    expect(Object.keys(sums).filter((name) => sums[name] === 0 && !mayBeNone.includes(name))).toEqual([]);
  },
);

test.skipIf(replayed !== undefined)(
  "a release whose commands mean something else, and that does not say so, is found out",
  { tags: ["long"], timeout: 600_000 },
  async () => {
    await expect(underSeeds(seedsFrom(1, MANY), "careless")).rejects.toThrow(/Replay: COTERIE_SEED=\d+ npx vitest run/);
  },
);
