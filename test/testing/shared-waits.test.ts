/**
 * Checks waiters and grants on the log while callers give up, retry or fail, and members are cut off, in virtual time.
 */
import { describe, expect, test } from "vitest";
import type { AcquireOptions, CoordinationError, QueueItem } from "../../src/index.ts";
import { simulate, type World } from "../../src/testing/index.ts";
import { uncaughtDuring } from "../uncaught.ts";

const three = (seed = 1): World => simulate({ members: 3, seed });

const outcomes = async (calls: readonly Promise<unknown>[]): Promise<unknown[]> =>
  (await Promise.allSettled(calls)).map((each) =>
    each.status === "fulfilled" ? each.value : (each.reason as { code: string }).code,
  );

test("a listener of a grant's deadline that throws ends neither the member nor the grant", async () => {
  const world = three();
  let isHeld = false;
  const faults = await uncaughtDuring(() =>
    world.run(async () => {
      const grant = await world.member(1).mutex("invoice").acquire();
      let isFirst = true;
      const forget = grant.onDeadline(() => {
        if (!isFirst) throw new Error("of the listener");
        isFirst = false;
      });
      await world.sleep(2_000);
      forget();
      await world.member(1).map("stock").put("apples", 1);
      isHeld = grant.isHeld;
    }),
  );
  expect(isHeld).toBe(true);
  expect(new Set(faults.map(String))).toEqual(new Set(["Error: of the listener"]));
});

/** Cuts off the first member after it has taken an item, and returns the item. */
async function takenBehindCut(world: World): Promise<QueueItem<string>> {
  const queue = world.member(1).queue<string>("orders");
  await queue.add("a");
  const item = await queue.take();
  world.partition([1], [2, 3]);
  return item;
}

describe("an item of a queue", () => {
  test("is done once, even if done() is called repeatedly, and then at once", async () => {
    const world = three();
    await world.run(async () => {
      const queue = world.member(1).queue("orders");
      for (const item of ["a", "b"]) await queue.add(item);
      const item = await queue.take();
      expect(await outcomes([item.done(), item.done()])).toEqual([undefined, undefined]);
      await item.done();
      await item.giveBack(); // This has no effect anymore.
      expect(item.signal.reason).toMatchObject({ code: "released" });
      expect((await world.member(2).queue("orders").take()).item).toBe("b");
      expect(await queue.size()).toBe(0);
    });
  });

  test("whose done() timed out can be retried, and is then done", async () => {
    const world = three();
    await world.run(async () => {
      const item = await takenBehindCut(world);
      await expect(item.done({ timeoutMs: 100 })).rejects.toMatchObject({
        code: "request-timeout",
        phase: "uncertain",
      });
      world.heal();
      await world.sleep(100); // The request takes effect while the session lasts.
      await item.done();
      expect(item.signal.reason).toMatchObject({ code: "released" });
    });
  });

  test("that was lost meanwhile is not done", async () => {
    const world = three();
    await world.run(async () => {
      const item = await takenBehindCut(world);
      const again = await world.member(2).queue("orders").take();
      const done = item.done();
      await expect(done).rejects.toMatchObject({ code: "grant-lost" });
      world.heal();
      await again.done();
      await expect(item.done()).rejects.toMatchObject({ code: "grant-lost" });
    });
  });
});

describe("an election", () => {
  interface Told {
    address: string;
  }

  test("reports the metadata of the current campaign, even if its leader has watched the election before", async () => {
    const world = three();
    await world.run(async () => {
      const [one, two] = [world.member(1), world.member(2)];
      const heard: (string | undefined)[] = [];
      const listening = async (): Promise<void> => {
        for await (const { leader, metadata } of two.election<Told>("report").watch())
          if (leader !== null) heard.push(metadata?.address);
      };
      void listening();
      void one.election("report").watch().next();
      await world.sleep(100);
      for (const address of ["a", "b"]) {
        await one.election("report", { metadata: { address } }).lead(() => world.sleep(100));
        await world.sleep(100);
      }
      await one.election("report").lead(() => world.sleep(100));
      expect(heard).toEqual(["a", "b", undefined]);
    });
  });

  test("rejects a campaign whose metadata differs from a running campaign of the process", async () => {
    const world = three();
    await world.run(async () => {
      const election = (address: string) => world.member(1).election("report", { metadata: { address } });
      const other = election("b");
      const led = election("a").lead(() => world.sleep(500));
      const work = (): void => {};
      await expect(other.lead(work)).rejects.toMatchObject({
        code: "other-setting",
        message:
          'expected the metadata of the election "report" to be {"address":"a"}, as in this process\'s running campaign, got {"address":"b"}',
      });
      await expect(election("a").lead(work)).rejects.toMatchObject({ code: "already-campaigning" });
      await led;
      await other.lead(work);
    });
  });

  test("reports the leader a little later if too many requests are pending", async () => {
    const world = three();
    await world.run(async () => {
      const [one, two] = [world.member(1), world.member(2)];
      const stop = new AbortController();
      const led = one.election("report").lead(() => world.sleep(10_000), { signal: stop.signal });
      await world.sleep(500);
      const reads = Array.from({ length: 1_100 }, () => two.map("stock").get("apples"));
      const watch = two.election("report").watch();
      expect((await watch.next()).value).toEqual({ leader: null, token: null });
      expect(new Set(await outcomes(reads))).toEqual(new Set([undefined, "overloaded"]));
      expect((await watch.next()).value).toMatchObject({ leader: 1 });
      stop.abort();
      await expect(led).rejects.toMatchObject({ code: "lead-aborted" });
    });
  });
});

describe("a barrier", () => {
  const at = (world: World, id: number, options: AcquireOptions = {}): Promise<number> =>
    world.member(id).barrier("start", { parties: 2 }).arrive(options);
  const others = async (world: World): Promise<[leader: number, one: number, other: number]> => {
    await world.member(1).map("stock").put("apples", 1);
    const { leader } = world.member(1).status().shared ?? {};
    const [one, other] = [1, 2, 3].filter((id) => id !== leader);
    return [leader as number, one as number, other as number];
  };

  test("opens for a member that was cut off when all had arrived", async () => {
    const world = three();
    await world.run(async () => {
      const [leader, one, other] = await others(world);
      const arrival = at(world, one);
      await world.sleep(100);
      world.partition([one], [leader, other]);
      await world.sleep(300); // The log has not ended its session yet.
      const generation = await at(world, other);
      await world.sleep(5_000); // By now the log has ended the session.
      world.heal();
      expect(await arrival).toBe(generation);
    });
  });

  test("counts a new arrival once the log has ended the session of a member that was cut off", async () => {
    const world = three();
    await world.run(async () => {
      const [leader, one, other] = await others(world);
      const arrival = at(world, one);
      await world.sleep(100);
      world.partition([one], [leader, other]);
      await world.sleep(8_000); // Longer than a session.
      let hasPassed = false;
      const second = at(world, other).finally(() => {
        hasPassed = true;
      });
      await world.sleep(1_000);
      expect(hasPassed).toBe(false);
      world.heal();
      expect(await arrival).toBe(await second);
    });
  });

  test("counts no arrival that was reported as given up, and opened for all that passed", async () => {
    const world = three();
    await world.run(async () => {
      await Promise.all([at(world, 1), at(world, 2)]);
      const ends: string[] = [];
      for (let round = 0; round < 40; round++) {
        const stop = new AbortController();
        const first = at(world, 1, { signal: stop.signal }).then(
          () => "passed",
          (error: unknown) => `${(error as CoordinationError).code} ${(error as CoordinationError).phase}`,
        );
        await world.sleep(50);
        const before = round % 2 === 0 ? null : at(world, 2);
        stop.abort();
        const end = await first;
        ends.push(end);
        if (end === "passed") expect(await before).toBeGreaterThan(0);
        else if (before !== null) await Promise.all([before, at(world, 3)]);
        else await expect(at(world, 3, { timeoutMs: 200 })).rejects.toMatchObject({ phase: "never-acquired" });
      }
      expect(ends.filter((_end, round) => round % 2 === 0)).toEqual(Array(20).fill("acquire-aborted never-acquired"));
    });
  });

  test("may have counted the arrival of a caller that gives up while no member answers, and reports it soon", async () => {
    const world = three();
    await world.run(async () => {
      const [leader, one, other] = await others(world);
      const stop = new AbortController();
      const arrival = at(world, one, { signal: stop.signal });
      await world.sleep(100);
      world.partition([one], [leader, other]);
      await world.sleep(50);
      stop.abort();
      const began = world.now();
      await expect(arrival).rejects.toMatchObject({
        code: "acquire-aborted",
        phase: "uncertain",
        name: "AbortError",
        message: expect.stringContaining("the arrival may have been counted"),
      });
      expect(world.now() - began).toBeLessThan(300);
      expect(await at(world, other)).toBeGreaterThan(0);
      world.heal();
      await expect(at(world, other, { timeoutMs: 2_000 })).rejects.toMatchObject({ code: "acquire-timeout" });
    });
  });

  test("may have opened for a member that was cut off if the others no longer remember the result", async () => {
    const world = three();
    await world.run(async () => {
      const [leader, one, other] = await others(world);
      const arrival = at(world, one);
      await world.sleep(100);
      world.partition([one], [leader, other]);
      expect(await at(world, other)).toBeGreaterThan(0);
      await world.sleep(8_000); // The first member's session has ended too.
      const large = "x".repeat(500_000);
      for (let key = 0; key < 60; key++)
        await world
          .member(other)
          .map("stock")
          .put(`${key % 3}`, large);
      for (const id of [leader, other]) {
        world.kill(id); // Messages to the first member are lost.
        await world.restart(id);
      }
      world.heal();
      await expect(arrival).rejects.toMatchObject({ code: "outcome-unknown", phase: "uncertain" });
    });
  });

  test("opens for a client whose member was killed before answering, and for one that waits at another member", async () => {
    for (const isPassed of [true, false]) {
      const world = three();
      await world.run(async () => {
        const [, one, other] = await others(world);
        const client = await world.connect({ members: [one] });
        const arrival = client.barrier("start", { parties: 2 }).arrive();
        await world.sleep(300);
        expect(client.status().member).toBe(one);
        world.kill(one);
        if (!isPassed) {
          while (client.status().member !== other) await world.sleep(10);
          await world.sleep(100);
        }
        const generation = await at(world, other);
        const passed = await arrival;
        if (isPassed) expect(passed).toBeGreaterThanOrEqual(generation);
        else expect(passed).toBe(generation);
        await expect(at(world, other, { timeoutMs: 1_000 })).rejects.toMatchObject({ code: "acquire-timeout" });
        await client.close();
      });
    }
  });
});
