/** Runs whole members, with their locks, elections and channels, under random faults in virtual time. */
import { afterEach, expect, test, vi } from "vitest";
import { Resending } from "../../src/cluster/services/resending.ts";
import { firstSeed } from "../random-seeds.ts";
import { swarm } from "./swarm.ts";

const FEW = 4;
const { COTERIE_SEED: replayed, COTERIE_SEEDS: count } = process.env;

async function underSeeds(first: number, last: number): Promise<void> {
  const sums = { grants: 0, deliveries: 0, faults: 0, putAway: 0, refused: 0, slow: 0, sentAgain: 0 };
  const insist = vi.spyOn(Resending.prototype, "insist");
  for (let seed = first; seed <= last; seed++) {
    const { world: _, ...seen } = await swarm(seed);
    for (const [what, count] of Object.entries(seen)) sums[what as keyof typeof seen] += count;
    sums.sentAgain += insist.mock.results.filter(({ value }) => value.lost !== null).length;
    insist.mockClear();
  }
  console.log(`seeds ${first} to ${last}: ${JSON.stringify(sums)}`);
  if (last > first) for (const [what, sum] of Object.entries(sums)) expect([what, sum > 0]).toEqual([what, true]);
}

afterEach(() => vi.restoreAllMocks());

test("grants do not overlap, tokens grow, views agree, and channels keep their order under faults", () =>
  replayed === undefined ? underSeeds(1, FEW) : underSeeds(Number(replayed), Number(replayed)));

test("the same for the number of seeds in COTERIE_SEEDS", { tags: ["larger"] }, () =>
  underSeeds(firstSeed(), firstSeed() + Number(count) - 1),
);
