/** Members that come and go, in virtual time. */
import { describe, expect, test } from "vitest";
import type { World } from "../../src/testing/index.ts";
import { simulate } from "../../src/testing/index.ts";

const rolesAt = async (world: World, id: number): Promise<string[]> =>
  (await world.member(id).cluster.members()).map(({ id: member, role }) => `${member} ${role}`);

describe("a member that is added", () => {
  test("gets all that the others have, votes, and shares on", async () => {
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

test("the first member is removed: it learns that, and does not come back", async () => {
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
