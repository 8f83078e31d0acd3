/** The whole member, with its locks, elections and channels by name, under random faults in virtual time. */
import { afterEach, expect, test, vi } from "vitest";
import { Resending } from "../../src/cluster/services/resending.ts";
import { firstSeed } from "../random-seeds.ts";
import { plainSwarm, swarm } from "./swarm.ts";

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

test("no two grants overlap, tokens grow, views agree, and channels keep their order, whatever fails", () =>
  replayed === undefined ? underSeeds(1, FEW) : underSeeds(Number(replayed), Number(replayed)));

/** What was sent to a member that had just been started again was lost on links that had not noticed yet; its channel stood still. */
test.each([78, 183, 323])("a channel goes on though a member is back before all links know: seed %d", async (seed) => {
  expect((await plainSwarm(seed)).deliveries).toBeGreaterThan(0);
});

/** The log ended a session that its member had not been certain of yet: what it had granted was handed over in the next one. */
test("what an ended session was granted is not had in the next one: seed 50", async () => {
  expect((await plainSwarm(50)).grants).toBeGreaterThan(0);
});

/** A full link did not take what one member told another of the channel, and nobody told it again: what was sent there waited for ever. */
test("a channel goes on though a full link took no word of it: seed 4763", async () => {
  expect((await swarm(4763)).deliveries).toBeGreaterThan(0);
});

test("the same under as many seeds as COTERIE_SEEDS says", { tags: ["larger"] }, () =>
  underSeeds(firstSeed(), firstSeed() + Number(count) - 1),
);
