/** The whole member, names, settings, locks, elections and channels, under random faults in virtual time. */
import { expect, test } from "vitest";
import { seeds } from "../../src/testing/index.ts";
import { swarm } from "./swarm.ts";

const FEW = 20;
const MANY = 10_000;

async function underSeeds(count: number): Promise<void> {
  const sums = { grants: 0, deliveries: 0, faults: 0 };
  for (const seed of seeds(count)) {
    const { grants, deliveries, faults } = await swarm(seed);
    sums.grants += grants;
    sums.deliveries += deliveries;
    sums.faults += faults;
  }
  for (const sum of Object.values(sums)) expect(sum).toBeGreaterThan(0);
}

test("no two grants overlap, tokens grow, views agree, and channels keep their order, whatever fails", () =>
  underSeeds(FEW));

test("the same under very many seeds", { tags: ["long"], timeout: 3_600_000 }, () => underSeeds(MANY));
