/**
 * Measures exactly, in virtual time, how long a lock or a leadership has no holder after a crash with default settings.
 * docs/guide/mutex.md shows the results.
 */
import { expect, test } from "vitest";
import type { Timing } from "../../src/cluster/services/timing.ts";
import type { Member } from "../../src/index.ts";
import { simulate, type World } from "../../src/testing/index.ts";

/** docs/guide/mutex.md shows the smallest, median and largest value over these seeds. */
const SEEDS = Array.from({ length: 12 }, (_, at) => at + 1);
const FOR_EVER_MS = 60_000;

type Tenure = { readonly token: number };
type Take = (world: World, member: Member) => Promise<Tenure>;

const lock: Take = (_world, member) => member.mutex("invoice").acquire();

const leadership: Take = (world, member) =>
  new Promise((resolve) => {
    const work = async (tenure: Tenure): Promise<void> => {
      resolve(tenure);
      await world.sleep(FOR_EVER_MS);
    };
    member
      .election("report")
      .lead(work)
      .catch(() => {}); // Rejects when the member is killed.
  });

/** @param isLeader whether the crashed member also leads the log */
async function failOverMs(take: Take, isLeader: boolean, seed: number, timing: Timing): Promise<number> {
  const world = simulate({ members: 3, seed, join: { timing } });
  let took = Number.NaN;
  await world.run(async () => {
    for (const id of world.members) await world.member(id).ready();
    const { leader } = world.member(1).status();
    const holder = world.members.find((id) => (id === leader) === isLeader) as number;
    const next = world.members.find((id) => id !== holder && id !== leader) as number;
    const { token } = await take(world, world.member(holder));
    const waiting = take(world, world.member(next));
    await world.sleep(1_000 + 37 * seed);
    world.kill(holder);
    const killedAt = world.now();
    expect((await waiting).token).toBeGreaterThan(token);
    took = world.now() - killedAt;
  });
  return took;
}

const spread = (values: readonly number[]): readonly number[] => {
  const sorted = [...values].sort((a, b) => a - b);
  return [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted.at(-1)].map((ms) => Math.round(ms as number));
};

async function measured(
  take: Take,
  isLeader: boolean,
  seeds = SEEDS,
  timing: Timing = "default",
): Promise<readonly number[]> {
  const all: number[] = [];
  for (const seed of seeds) all.push(await failOverMs(take, isLeader, seed, timing));
  return spread(all);
}

const defaults = [
  ["lock", lock, false],
  ["lock, whose holder leads the log", lock, true],
  ["leadership", leadership, false],
  ["leadership, whose holder leads the log", leadership, true],
] as const;

/** A session expires 5 s after its last keep-alive. Clock drift and the sweep interval are added. */
const SESSION_MS = 5_750;

test.each(defaults)(
  "another member acquires the default %s once the session has expired",
  async (_name, take, isLeader) => {
    const [, , most] = await measured(take, isLeader, [1, 2]);
    expect(most).toBeLessThan(SESSION_MS);
  },
);

test.each(defaults)(
  "with the timing fast, another member acquires the default %s within half a second in the median",
  async (_name, take, isLeader) => {
    const [, median] = await measured(take, isLeader, [1, 2, 3], "fast");
    expect(median).toBeLessThan(500);
  },
);

test("a crashed leader of the log has a successor within half a second by default", async () => {
  for (const seed of [1, 2, 3, 4]) {
    const world = simulate({ members: 3, seed });
    await world.run(async () => {
      for (const id of world.members) await world.member(id).ready();
      const leader = world.member(1).status().leader as number;
      const [other] = world.members.filter((id) => id !== leader) as [number];
      const map = world.member(other).map<number>("numbers");
      await map.put("n", 0);
      world.kill(leader);
      const at = world.now();
      await map.put("n", 1);
      expect(world.now() - at).toBeLessThan(500);
    });
  }
});

test("under more seeds, the same bounds hold", {
  tags: ["larger"],
}, async () => {
  for (const [, take, isLeader] of defaults) {
    expect((await measured(take, isLeader))[2]).toBeLessThan(SESSION_MS);
    const [, median, most] = await measured(take, isLeader, SEEDS, "fast");
    expect(median).toBeLessThan(500);
    expect(most).toBeLessThan(1_000); // The largest value occurs after a split vote.
  }
});
