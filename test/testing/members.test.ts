/** Checks the addition and removal of members in virtual time. */
import { describe, expect, test } from "vitest";
import type { World } from "../../src/testing/index.ts";
import { simulate } from "../../src/testing/index.ts";

const rolesAt = async (world: World, id: number): Promise<string[]> =>
  (await world.member(id).cluster.members()).map(({ id: member, role }) => `${member} ${role}`);

describe("a member that is added", () => {
  test("receives all state of the others, votes, and replicates it in turn", async () => {
    const world = simulate({ members: 3, seed: 1 });
    await world.run(async () => {
      await world.member(1).map<number>("stock").put("apples", 3);
      const fourth = await world.add(4);
      await world.member(1).cluster.settled();
      expect(await rolesAt(world, 2)).toEqual(["1 voter", "2 voter", "3 voter", "4 voter"]);
      expect(await fourth.map<number>("stock").get("apples")).toBe(3);
      await fourth.map<number>("stock").put("pears", 5);
      expect(await world.member(3).map<number>("stock").get("pears")).toBe(5);
      const grant = await fourth.mutex("invoice").acquire();
      expect(grant.isHeld).toBe(true);
      await grant.release();
    });
  });
});

test("a removed first member learns of its removal and does not come back", async () => {
  const world = simulate({ members: 3, seed: 2 });
  await world.run(async () => {
    const [first] = [world.member(1)];
    const lock = await first.mutex("a").acquire();
    await world.add(4);
    await world.member(2).cluster.settled();
    await world.remove(1);
    expect(await rolesAt(world, 2)).toEqual(["2 voter", "3 voter", "4 voter"]);
    while (!first.signal.aborted) await world.sleep(50);
    expect(first.signal.reason).toMatchObject({ code: "member-removed" });
    expect(lock.isHeld).toBe(false);
    world.kill(1);
    await expect(world.restart(1)).rejects.toMatchObject({ code: "member-removed" });
    const grant = await world.member(4).mutex("a").acquire();
    expect(grant.token).toBeGreaterThan(lock.token);
  });
});

describe("several changes at once", () => {
  test("two are added and two removed in one step, while a client writes", async () => {
    const world = simulate({ members: 3, seed: 3 });
    await world.run(async () => {
      const numbers = world.member(3).map<number>("numbers");
      let isOver = false;
      let last = 0;
      const writing = (async () => {
        while (!isOver) await numbers.put("last", ++last);
      })();
      const added = [4, 5].map((id) => ({ type: "add", id, address: world.address(id) }) as const);
      const removed = [1, 2].map((id) => ({ type: "remove", id }) as const);
      await world.member(1).cluster.change([...added, ...removed]);
      const steps = new Set([(await rolesAt(world, 3)).join(", ")]);
      await world.enter(4);
      await world.sleep(2_000);
      steps.add((await rolesAt(world, 3)).join(", ")); // The voters stay the same until both have joined.
      await world.enter(5);
      await world.member(3).cluster.settled();
      expect([...steps]).toEqual(["1 leaving, 2 leaving, 3 voter, 4 joining, 5 joining"]);
      expect(await rolesAt(world, 3)).toEqual(["3 voter", "4 voter", "5 voter"]);
      isOver = true;
      await writing;
      expect(await world.member(5).map<number>("numbers").get("last")).toBe(last);
      for (const id of [1, 2]) while (!world.member(id).signal.aborted) await world.sleep(50);
    });
  });

  test("the leader is among the removed members, and crashes during the change", async () => {
    const world = simulate({ members: 3, seed: 4 });
    await world.run(async () => {
      await world.member(1).map<number>("stock").put("apples", 3);
      const leader = (await world.member(1).cluster.members()).find(({ isLeader }) => isLeader)?.id ?? 0;
      const stays = [1, 2, 3].filter((id) => id !== leader);
      await world.member(leader).cluster.change([
        { type: "add", id: 4, address: world.address(4) },
        { type: "add", id: 5, address: world.address(5), learner: true },
        { type: "remove", id: leader },
      ]);
      world.crash(leader);
      await Promise.all([world.enter(4), world.enter(5)]);
      const [one = 0] = stays;
      await world.member(one).cluster.settled();
      expect(await rolesAt(world, one)).toEqual([...stays.map((id) => `${id} voter`), "4 voter", "5 learner"]);
      expect(await world.member(4).map<number>("stock").get("apples")).toBe(3);
    });
  });

  test("an impossible change is rejected before anything changes", async () => {
    const world = simulate({ members: 1, seed: 5 });
    await world.run(async () => {
      const { cluster } = world.member(1);
      const refused = (changes: unknown) => async () => cluster.change(changes as never);
      await expect(refused([])()).rejects.toThrow("expected changes of change() to be a list of 1 to 64, got []");
      await expect(refused([{ type: "drop", id: 1 }])()).rejects.toThrow(
        'expected type of change() to be one of add, promote, remove, got "drop"',
      );
      await expect(refused([{ type: "add", id: 2 }])()).rejects.toThrow("expected address of change()");
      await expect(refused([{ type: "remove", id: 1 }])()).rejects.toMatchObject({ code: "last-voter" });
      const changes = [
        { type: "add", id: 2, address: world.address(2) },
        { type: "remove", id: 9 },
      ];
      await expect(refused(changes)()).rejects.toMatchObject({ code: "unknown-member" });
      expect(await rolesAt(world, 1)).toEqual(["1 voter"]);
    });
  });
});
