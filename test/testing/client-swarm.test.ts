/** Clients that are no members under random faults in virtual time. */
import { expect, test } from "vitest";
import { clientSwarm } from "./client-swarm.ts";

const SHORT_MS = 2_000;
const LONG_MS = 8_000;
/** `COTERIE_SWARM=10000 npx vitest run --project unit test/testing/client --tags-filter long` tries more. */
const MANY = Number(process.env.COTERIE_SWARM ?? 20);
const { COTERIE_SEED: replayed } = process.env;

async function underSeeds(first: number, last: number, faultsMs: number): Promise<void> {
  const sums = { grants: 0, added: 0, changes: 0, moves: 0, large: 0 };
  for (let seed = first; seed <= last; seed++) {
    const result = await clientSwarm(seed, faultsMs);
    for (const key of Object.keys(sums) as (keyof typeof sums)[]) sums[key] += result[key];
  }
  const { large, ...others } = sums;
  for (const sum of Object.values(others)) expect(sum).toBeGreaterThan(0);
  if (last - first >= 5) expect(large).toBeGreaterThan(0);
}

test("commands of clients are done once, watches have no gap, and nobody holds another's lock", () =>
  replayed === undefined ? underSeeds(1, 1, SHORT_MS) : underSeeds(Number(replayed), Number(replayed), LONG_MS));

test("the same under many seeds", { tags: ["long"], timeout: 3_600_000 }, () => underSeeds(1, MANY, LONG_MS));
