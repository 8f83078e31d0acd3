/**
 * Members of this release and of a later one, upgraded one by one while they are used, under random faults in virtual time.
 *
 * @module-tag long
 */
import { expect, test } from "vitest";
import { random } from "../../src/core/random.ts";
import type { World } from "../../src/testing/index.ts";
import { release as present, type Release } from "../../src/testing/release.ts";
import { sharedSwarm } from "./shared-swarm.ts";

const LONG_MS = 6_000;
/** `COTERIE_SWARM=10000 npx vitest run --project unit test/testing/rolling` tries more. */
const MANY = Number(process.env.COTERIE_SWARM ?? 25);
const { COTERIE_SEED: replayed } = process.env;

const releaseOf = async (name: string): Promise<Release> =>
  ((await import(/* @vite-ignore */ `../../src/testing/release.ts?release=${name}`)) as { release: Release }).release;

/** Each member is of this release until its turn comes: then it is killed, and from then on starts as one of the next. */
class Upgrade {
  readonly #upgraded = new Set<number>();

  constructor(
    private readonly next: Release,
    private readonly seed: number,
    private readonly forMs: number,
  ) {}

  readonly release = (id: number): Release => (this.#upgraded.has(id) ? this.next : present);
  readonly isUpgraded = (id: number): boolean => this.#upgraded.has(id);

  async run(world: World): Promise<void> {
    const chance = random(this.seed).stream("upgrade");
    const rest = [...world.members];
    const atMostMs = (2 * this.forMs) / rest.length;
    while (rest.length > 0) {
      await world.sleep(chance.between(0, atMostMs));
      const [id] = rest.splice(chance.below(rest.length), 1) as [number];
      this.#upgraded.add(id);
      world.kill(id);
      void world.restart(id).catch(() => {}); // It may be killed again before it has joined.
    }
  }
}

async function underSeeds(first: number, last: number, faultsMs: number, release = "later"): Promise<void> {
  const next = await releaseOf(release);
  const sums = { grants: 0, writes: 0, changes: 0, faults: 0, passed: 0, commands: 0, large: 0 };
  for (let seed = first; seed <= last; seed++) {
    const upgrade = new Upgrade(next, seed, faultsMs);
    const result = await sharedSwarm(seed, faultsMs, { upgrade });
    for (const key of Object.keys(sums) as (keyof typeof sums)[]) sums[key] += result[key];
  }
  const { large, ...others } = sums;
  for (const sum of Object.values(others)) expect(sum).toBeGreaterThan(0);
  if (last - first >= 5) expect(large).toBeGreaterThan(0);
}

test(
  "members that are upgraded one by one lose nothing, do nothing twice, and tell every change once",
  {
    timeout: 3_600_000,
  },
  () =>
    replayed === undefined ? underSeeds(1, MANY, LONG_MS) : underSeeds(Number(replayed), Number(replayed), LONG_MS),
);

test("a release whose commands mean something else, and that does not say so, is found out", async () => {
  await expect(underSeeds(1, MANY, LONG_MS, "careless")).rejects.toThrow(/Replay/);
});
