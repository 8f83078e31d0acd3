/**
 * Checks snapshots of many chunks: members write them while they work, read them when they restart, and send them to
 * new members.
 */
import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { simulate } from "../../src/testing/index.ts";

const KEYS = 60;
const valueAt = (key: number, round: number): string => `${round}:${String(key).repeat(50_000)}`;

test("a state of several megabytes survives restarts of all members and reaches a new member and a new cluster", async () => {
  const world = simulate({ members: 3, seed: 5 });
  await world.run(async () => {
    const state = (id: number) => world.member(id).map<string>("large");
    for (const round of [1, 2, 3])
      for (let key = 0; key < KEYS; key++) await state(1 + (key % 3)).put(`k${key}`, valueAt(key, round));
    const holds = async (id: number): Promise<void> => {
      for (let key = 0; key < KEYS; key++) expect((await state(id).get(`k${key}`)) === valueAt(key, 3)).toBe(true);
    };
    for (const id of [1, 2, 3]) world.crash(id);
    await Promise.all([1, 2, 3].map((id) => world.restart(id)));
    for (const id of [1, 2, 3]) await holds(id);

    await world.add(4);
    await world.member(1).cluster.settled();
    await holds(4);

    const snapshot = await buffer(await world.member(4).cluster.snapshot());
    for (const id of [1, 2, 3, 4]) {
      world.crash(id);
      world.wipe(id);
    }
    await world.restore(snapshot, [1, 2]);
    await Promise.all([1, 2].map((id) => world.restart(id)));
    await holds(2);
  });
});

test("a member that loses power while it writes or receives a snapshot loses no acknowledged write", async () => {
  const world = simulate({ members: 3, seed: 6 });
  await world.run(async () => {
    const state = (id: number) => world.member(id).map<string>("large");
    for (let key = 0; key < KEYS; key++) await state(1).put(`k${key}`, valueAt(key, 1));
    for (let blow = 0; blow < 12; blow++) {
      world.crash(3);
      for (let key = 0; key < KEYS; key += 2) await state(1).put(`k${key}`, valueAt(key, blow));
      const restarted = world.restart(3).catch(() => null); // The member may crash again before it has joined.
      await world.sleep(20 + 35 * blow);
      if (blow === 11) await restarted;
    }
    for (let key = 0; key < KEYS; key++) {
      const value = await world.member(3).map<string>("large").get(`k${key}`);
      expect(value === valueAt(key, key % 2 === 0 ? 11 : 1)).toBe(true);
    }
  });
});
