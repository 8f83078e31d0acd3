/** Members that come and go while others share state, under random faults in virtual time. */
import { expect, test } from "vitest";
import { sharedSwarm } from "./shared-swarm.ts";

const SHORT_MS = 2_500;
const LONG_MS = 8_000;
/** `COTERIE_SWARM=10000 npx vitest run --project unit test/testing/member-swarm --tags-filter long` tries more. */
const MANY = Number(process.env.COTERIE_SWARM ?? 25);
const { COTERIE_SEED: replayed } = process.env;

async function underSeeds(first: number, last: number, faultsMs: number): Promise<void> {
  const sums = { grants: 0, writes: 0, changes: 0, faults: 0, memberChanges: 0, passed: 0, commands: 0, large: 0 };
  for (let seed = first; seed <= last; seed++) {
    const result = await sharedSwarm(seed, faultsMs, { changesMembers: true });
    for (const key of Object.keys(sums) as (keyof typeof sums)[]) sums[key] += result[key];
  }
  const { large, ...others } = sums;
  if (last > first) for (const sum of Object.values(others)) expect(sum).toBeGreaterThan(0);
  if (last - first >= 5) expect(large).toBeGreaterThan(0);
}

test("what is acknowledged stands, and no lock is held twice, whoever is added, removed, replaced or moved", () =>
  replayed === undefined ? underSeeds(2, 3, SHORT_MS) : underSeeds(Number(replayed), Number(replayed), LONG_MS));

test("the same under many seeds", { tags: ["long"], timeout: 3_600_000 }, () => underSeeds(1, MANY, LONG_MS));
