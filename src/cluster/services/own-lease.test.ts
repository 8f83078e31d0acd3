/** Locks whose caller chose how long a permission lasts, at members that put away what nobody uses; in virtual time. */
import { describe, expect, test } from "vitest";
import { lockServerOf } from "../../../test/services/lock-server.ts";
import type { NodeId } from "../../core/protocol.ts";
import { simulate, type World } from "../../testing/index.ts";
import type { Mutex } from "./api.ts";

const IDS: readonly NodeId[] = [1, 2, 3];
/** What nobody uses is away by then. */
const A_WHILE = 3_000;

const openIn = (world: World): string[][] =>
  IDS.map((id) =>
    world
      .member(id)
      .status()
      .instances.map(({ name }) => name),
  );
const lockAt = (world: World, id: NodeId, options = {}, name = "x"): Mutex =>
  world.member(id).mutex(name, { algorithm: "elected-server", options });

/** Three, with who serves locks, which nobody uses then. */
async function served(body: (world: World, server: NodeId, others: readonly [NodeId, NodeId]) => Promise<void>) {
  await simulate({ members: IDS, seed: 1 }).run(async (world) => {
    const server = await lockServerOf(
      IDS.map((id) => world.member(id)),
      IDS.map((id) => lockAt(world, id, {}, "first")),
    );
    await world.sleep(A_WHILE);
    expect(openIn(world)).toEqual([[], [], []]);
    await body(world, server.id, IDS.filter((id) => id !== server.id) as [NodeId, NodeId]);
  });
}

describe("a lock with a lease of its own", () => {
  const long = { leaseMs: 10_000 };
  const short = { leaseMs: 100, renewMs: 50 };

  test("stays at all members: a shorter one cannot be had while a member that is cut off holds it", () =>
    served(async (world, server, others) => {
      const grant = await lockAt(world, server, long).acquire({ timeoutMs: 11_000 }); // Leases of earlier servers are awaited.
      await world.sleep(A_WHILE);
      world.partition([server], others);
      for (const id of others) world.crash(id);
      await Promise.all(others.map((id) => world.restart(id)));
      await world.sleep(A_WHILE);
      expect(openIn(world)).toEqual([["x"], ["x"], ["x"]]);
      for (const id of others) expect(() => lockAt(world, id)).toThrow("as they are in use already");
      expect(grant.isHeld).toBe(true);
      const next = await lockAt(world, others[0], long).acquire();
      expect({ before: grant.isHeld, now: next.isHeld }).toEqual({ before: false, now: true });
      expect(next.token).toBeGreaterThan(grant.token);
    }));

  test.each([0, 700, 1_000])(
    "that is shorter than the usual one waits for those that were given before, opened %i ms after its server was cut off",
    (afterMs) =>
      served(async (world, server, others) => {
        const grant = await lockAt(world, server).acquire();
        await world.sleep(A_WHILE);
        expect(openIn(world)).toEqual(IDS.map((id) => (id === server ? ["x"] : [])));
        world.partition([server], others);
        await world.sleep(afterMs);
        const next = await lockAt(world, others[0], short).acquire();
        expect({ before: grant.isHeld, now: next.isHeld }).toEqual({ before: false, now: true });
        expect(next.token).toBeGreaterThan(grant.token);
      }),
  );

  test("that says only how often it is renewed is put away as any other", () =>
    served(async (world, _server, [other]) => {
      await lockAt(world, other, { renewMs: 100 }).use(() => {});
      await world.sleep(2 * A_WHILE);
      expect(openIn(world)).toEqual([[], [], []]);
    }));

  test("and whose token goes round stays as well: the name cannot be had with a shorter one", () =>
    simulate({ members: IDS, seed: 1 }).run(async (world) => {
      const ring = (id: NodeId, options: object): Mutex =>
        world.member(id).mutex("x", { algorithm: "epoch-token-ring", options });
      await ring(2, long).use(() => {});
      await world.sleep(2 * A_WHILE);
      expect(openIn(world)).toEqual([["x"], ["x"], ["x"]]);
      expect(() => ring(3, short)).toThrow("as they are in use already");
    }));
});
