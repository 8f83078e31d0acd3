/** Checks saved snapshots and the clusters founded from them, in virtual time. */
import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { readSnapshot } from "../../src/cluster/snapshot/snapshot-file.ts";
import { CoordinationError } from "../../src/index.ts";
import { simulate, type World } from "../../src/testing/index.ts";

const IDS = [1, 2, 3];

/** Loses all members except those in `but`. The members of the new cluster begin with empty disks. */
function loseAll(world: World, but: readonly number[] = []): void {
  for (const id of world.members) {
    if (world.isUp(id)) world.crash(id);
    if (!but.includes(id)) world.wipe(id);
  }
}

async function startAll(world: World, ids: readonly number[] = IDS): Promise<void> {
  await Promise.all(ids.map((id) => world.restart(id)));
  await world.member(ids[0] as number).ready();
}

test("a new cluster has all data acknowledged before the snapshot, and its tokens continue above the old ones", async () => {
  const world = simulate({ members: 3, seed: 11 });
  await world.run(async () => {
    const [one, two] = [world.member(1), world.member(2)];
    const stock = one.map<number>("stock");
    const apples = await stock.put("apples", 3);
    await stock.put("pears", 4, { leased: true });
    await one.counter("orders").add(7);
    const queue = one.queue<string>("jobs");
    for (const job of ["a", "b", "c"]) await queue.add(job);
    const taken = await two.queue<string>("jobs").take();
    expect(taken.item).toBe("a");
    const lock = await two.mutex("disk").acquire();
    const seats = two.replicated("seats", {
      init: () => 10,
      apply: (left: number, by: number) => [left - by, left - by],
    });
    await seats.execute(3);
    const snapshot = await buffer(await two.cluster.snapshot());
    await lock.release();
    const later = await two.mutex("disk").acquire(); // The old cluster continues.
    const lost = await stock.put("apples", 5);
    expect((await readSnapshot([snapshot], "it")).header).toMatchObject({
      cluster: "coterie",
      member: 2,
      salvaged: null,
    });

    loseAll(world);
    await world.restore(snapshot);
    await startAll(world);
    const again = world.member(3);
    expect(await again.map<number>("stock").entry("apples")).toEqual({ key: "apples", value: 3, revision: apples });
    expect(await again.map<number>("stock").get("pears")).toBeUndefined(); // The session of its lease has ended.
    expect(await again.counter("orders").get()).toBe(7);
    const jobs = again.queue<string>("jobs");
    const items = [await jobs.take(), await jobs.take(), await jobs.take()];
    expect(items.map(({ item }) => item)).toEqual(["a", "b", "c"]);
    expect(
      await again
        .replicated("seats", { init: () => 10, apply: (left: number, by: number) => [left - by, left - by] })
        .execute(1),
    ).toBe(6);
    const next = await again.mutex("disk").acquire();
    for (const { token } of [...items, next]) expect(token).toBeGreaterThan(Math.max(lock.token, later.token, lost));
    const watch = again.map("stock").watch({ after: lost });
    await expect(watch.next()).rejects.toMatchObject({ code: "compacted" });
    expect(await again.map<number>("stock").compareAndSet("apples", apples, 4)).toBeGreaterThan(lost);
  });
});

test("a member of the old cluster that restarts with its folder is rejected, and rejects the new one", async () => {
  const world = simulate({ members: 3, seed: 12 });
  await world.run(async () => {
    await world.member(1).map<number>("stock").put("apples", 3);
    const snapshot = await buffer(await world.member(1).cluster.snapshot());
    loseAll(world, [3]);
    await world.restore(snapshot);
    await startAll(world, [1, 2]);
    const old = await world.restart(3);
    await world.member(1).map<number>("stock").put("apples", 4);
    await world.sleep(10_000);
    expect(world.member(1).status().refusals).toMatchObject([{ node: 3, reason: "lost-journal" }]);
    expect(
      old
        .status()
        .refusals.map(({ node, reason }) => `${node} ${reason}`)
        .sort(),
    ).toEqual(["1 lost-journal", "2 lost-journal"]);
    expect(old.status().hasQuorum).toBe(false);
    const read = old.map<number>("stock").get("apples", { timeoutMs: 1_000 });
    await expect(read).rejects.toBeInstanceOf(CoordinationError);

    world.crash(3);
    world.wipe(3); // An empty folder does not help, because 3 is not a member of the new cluster.
    const empty = world.restart(3);
    empty.catch(() => {});
    await world.sleep(10_000);
    expect(world.member(1).status().refusals).toMatchObject([{ node: 3, reason: "lost-journal" }]);
    await world.member(2).cluster.remove(3);
    expect(await world.member(1).map<number>("stock").get("apples")).toBe(4);
  });
});

test("a cluster of other members is founded from a snapshot, grows, and is saved again", async () => {
  const world = simulate({ members: 3, seed: 13 });
  await world.run(async () => {
    await world.member(1).map<number>("stock").put("apples", 3);
    const snapshot = await buffer(await world.member(1).cluster.snapshot());
    loseAll(world);
    await world.restore(snapshot, [2]);
    await startAll(world, [2]);
    await world.add(4);
    await world.member(2).cluster.settled();
    expect(await world.member(4).map<number>("stock").get("apples")).toBe(3);
    const second = await buffer(await world.member(4).cluster.snapshot());
    const revisionOf = async (bytes: Buffer): Promise<number> => (await readSnapshot([bytes], "it")).header.revision;
    expect(await revisionOf(second)).toBeGreaterThan((await revisionOf(snapshot)) + 2 ** 40);
    loseAll(world);
    await world.restore(second, [2, 4]);
    await startAll(world, [2, 4]);
    expect(await world.member(4).map<number>("stock").get("apples")).toBe(3);
  });
});
