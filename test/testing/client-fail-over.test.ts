/** Checks that a client keeps its grants and watches when its member can no longer serve it, for any reason. */
import { expect, test } from "vitest";
import type { Client, Grant } from "../../src/index.ts";
import { simulate, type World } from "../../src/testing/index.ts";
import { endpointOf } from "../../src/testing/simulated-clients.ts";

/** Longer than a session lasts. */
const LONG_MS = 10_000;

/** Returns a client that is connected to member 1, knows all members and holds a lock, and its grant. */
async function holding(world: World): Promise<{ client: Client; grant: Grant }> {
  const client = await world.connect({ members: [1] });
  const grant = await client.mutex("one").acquire({ timeoutMs: 5_000 });
  await world.sleep(500);
  expect(client.status().member).toBe(1);
  return { client, grant };
}

async function requireKept(world: World, { client, grant }: { client: Client; grant: Grant }): Promise<void> {
  const { session } = client.status();
  await world.sleep(LONG_MS);
  expect(client.status()).toMatchObject({ session });
  expect(grant.isHeld).toBe(true);
  expect(client.status().member).not.toBe(1);
  await client.counter("visits").add(1, { timeoutMs: 1_000 });
  await client.close();
}

test("its member is cut off from the others: the client continues at a member with a leader, in its session", async () => {
  const wasLeading = new Set<boolean>();
  for (const seed of [1, 5, 9, 15]) {
    const world = simulate({ members: 3, seed });
    await world.run(async () => {
      const held = await holding(world);
      wasLeading.add(world.member(1).status().leader === 1);
      world.partition([1], [2, 3]); // The client can reach all members.
      await requireKept(world, held);
    });
  }
  expect(wasLeading.size).toBe(2);
});

test("its member and the next one crash without answering: the client does not wait for the second", async () => {
  const world = simulate({ members: 5, seed: 1 });
  await world.run(async () => {
    const held = await holding(world);
    expect(held.client.status().endpoints.slice(0, 2)).toEqual([1, 2].map(endpointOf));
    world.crash(1);
    world.crash(2);
    await requireKept(world, held);
  });
});

test("watches above the limit of concurrent requests continue at another member, and none loses a change", async () => {
  const world = simulate({ members: 3, seed: 1 });
  await world.run(async () => {
    const { client } = await holding(world);
    const map = client.map<number>("many");
    const keys = Array.from({ length: 1_100 }, (_, at) => `k${at}`);
    const told = keys.map((key) => map.watch({ key }).next());
    await world.sleep(1_000);
    world.kill(1);
    await world.sleep(2_000);
    for (const key of keys) await world.member(2).map("many").put(key, 1);
    const changes = await Promise.all(told);
    expect(changes.map(({ value }) => (value as { key: string }).key)).toEqual(keys);
    await client.close();
  });
});
