/**
 * Checks calls on shared state in virtual time: their timeouts, their atomicity, and their errors after the member or
 * client has ended.
 */
import { describe, expect, test } from "vitest";
import type { Client } from "../../src/client/client.ts";
import type { CoordinationError, Member, SharedMap } from "../../src/index.ts";
import { simulate, type World } from "../../src/testing/index.ts";

const mapOf = (user: Member | Client): SharedMap<number> => user.map<number>("stock");

const failureOf = (work: Promise<unknown>): Promise<CoordinationError> =>
  work.then(
    () => {
      throw new Error("expected a failure");
    },
    (error: unknown) => error as CoordinationError,
  );

/** Makes other members write that key as fast as they can until the returned function is called. */
function contend(world: World, key: string): () => void {
  let goesOn = true;
  const write = async (map: SharedMap<number>, from: number): Promise<void> => {
    for (let value = from; goesOn; value++) await map.put(key, value);
  };
  for (const id of [2, 3]) for (let from = 0; from < 12; from++) void write(mapOf(world.member(id)), from * 1_000_000);
  return () => {
    goesOn = false;
  };
}

describe("a watch", () => {
  test.each(["a member", "a client"])(
    "of %s without events ends when it is aborted, and when it is returned",
    async (who) => {
      const world = simulate({ members: 3 });
      await world.run(async () => {
        const user = who === "a member" ? world.member(1) : await world.connect({ machine: 1_000 });
        const revision = await mapOf(user).put("a", 1);
        world.partition([who === "a member" ? 1 : 1_000]);
        await world.sleep(3_000);
        const aborting = new AbortController();
        const next = mapOf(user).watch({ after: revision, signal: aborting.signal }).next();
        const returned = mapOf(user).watch({ after: revision });
        const nextOfReturned = returned.next();
        await world.sleep(100);
        aborting.abort();
        await returned.return?.();
        expect(await next).toMatchObject({ done: true });
        expect(await nextOfReturned).toMatchObject({ done: true });
      });
    },
  );

  test.each(["asking", "told"])("of a member that leaves ends, whether it is %s or not", async (how) => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const after = await mapOf(world.member(1)).put("a", 1);
      if (how === "asking") world.partition([1]);
      await world.sleep(50);
      const next = mapOf(world.member(1)).watch({ after }).next();
      await world.sleep(100);
      await world.member(1).leave();
      expect(await next).toMatchObject({ done: true });
    });
  });

  test("after a future revision reports no earlier change", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const map = mapOf(world.member(1));
      const after = (await map.put("a", 0)) + 2;
      const next = map.watch({ after }).next();
      await world.sleep(100);
      for (const value of [1, 2, 3]) await map.put("a", value);
      expect((await next).value).toMatchObject({ value: 3, revision: after + 1 });
    });
  });
});

describe("a transaction", () => {
  test("whose work throws because of an inconsistent read runs again", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const [one, two] = [mapOf(world.member(1)), mapOf(world.member(2))];
      await world.member(1).transaction((t) => {
        t.put(one, "a", 50);
        t.put(one, "b", 50);
      });
      let goesOn = true;
      const moving = (async () => {
        while (goesOn)
          await world.member(2).transaction(async (t) => {
            const [a = 0, b = 0] = [await t.get(two, "a"), await t.get(two, "b")];
            t.put(two, "a", a - 1);
            t.put(two, "b", b + 1);
          });
      })();
      let torn = 0;
      for (let round = 0; round < 50; round++)
        await world.member(1).transaction(async (t) => {
          const [a = 0, b = 0] = [await t.get(one, "a"), await t.get(one, "b")];
          if (a + b === 100) return;
          torn += 1;
          throw new Error(`${a} and ${b} are not 100`);
        });
      goesOn = false;
      await moving;
      expect(torn).toBeGreaterThan(0); // Some attempts must read inconsistent values.
    });
  });

  test("rethrows an error of its work unchanged if the reads were consistent", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const map = mapOf(world.member(1));
      let runs = 0;
      const mine = new Error("mine");
      const failing = world.member(1).transaction(async (t) => {
        runs += 1;
        t.put(map, "c", 1);
        await t.get(map, "a");
        await t.get(map, "b");
        throw mine;
      });
      await expect(failing).rejects.toBe(mine);
      expect(runs).toBe(1);
      expect(await map.get("c")).toBeUndefined();
    });
  });

  test("whose work throws while the consistency of its reads is unknown rejects with that error as the cause", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const map = mapOf(world.member(1));
      const mine = new Error("mine");
      const failing = world.member(1).transaction(async (t) => {
        await t.get(map, "a");
        await t.get(map, "b");
        await world.member(1).leave();
        throw mine;
      });
      const error = await failureOf(failing);
      expect(error).toMatchObject({ code: "member-left", phase: "never-sent" });
      expect(error.cause).toBe(mine);
    });
  });

  test("of too many keys is rejected, even if its work catches the error", async () => {
    const world = simulate({ members: 1 });
    await world.run(async () => {
      const map = mapOf(world.member(1));
      const many = world.member(1).transaction((t) => {
        for (let key = 0; key < 65; key++)
          try {
            t.put(map, `k${key}`, key);
          } catch {}
      });
      await expect(many).rejects.toMatchObject({ code: "too-large" });
      expect((await map.range()).entries).toEqual([]);
    });
  });
});

describe("the timeout of a call", () => {
  test("covers all its attempts, and a late attempt has no effect", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const map = mapOf(world.member(1));
      await map.put("hot", 0);
      const stop = contend(world, "hot");
      const calls: readonly (() => Promise<unknown>)[] = [
        () => map.update("hot", () => -1, { timeoutMs: 200 }),
        () =>
          world.member(1).transaction(
            async (t) => {
              await t.get(map, "hot");
              t.put(map, "other", 1);
            },
            { timeoutMs: 200 },
          ),
      ];
      for (const call of calls) {
        const began = world.now();
        const error = await failureOf(call());
        expect(error.code).toBe("request-timeout");
        expect(world.now() - began).toBeLessThan(210);
        // The last attempt may still be in progress when the timeout expires.
        expect(error.message).toMatch(
          /another writer changed (it|a key that it had read) first, \d+ times in a row; (it had no effect|it may have taken effect, or may still take effect)$/,
        );
      }
      stop();
      await world.sleep(1_000);
      expect(await map.get("hot")).toBeGreaterThanOrEqual(0);
    });
  });

  test("includes the work of a transaction, which writes nothing after it", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const map = mapOf(world.member(1));
      let late: unknown;
      const began = world.now();
      const slow = world.member(1).transaction(
        async (t) => {
          t.put(map, "a", 1);
          await world.sleep(5_000);
          late = await failureOf(t.get(map, "b"));
        },
        { timeoutMs: 200 },
      );
      expect(await failureOf(slow)).toMatchObject({ code: "request-timeout", phase: "never-sent" });
      expect(world.now() - began).toBeLessThan(210);
      await world.sleep(10_000);
      expect(late).toMatchObject({ code: "transaction-over" });
      expect(await map.get("a")).toBeUndefined();
    });
  });

  test("is over before it begins if its signal is aborted: no work runs", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      let runs = 0;
      const run = (): number => (runs += 1);
      const options = { signal: AbortSignal.abort() };
      for (const call of [world.member(1).transaction(run, options), mapOf(world.member(1)).update("a", run, options)])
        expect(await failureOf(call)).toMatchObject({ code: "request-aborted", phase: "never-sent" });
      expect(runs).toBe(0);
    });
  });

  test("of an update ends with its signal, and the error states whether the update may have been applied", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const map = mapOf(world.member(1));
      const aborting = new AbortController();
      const updating = map.update(
        "a",
        () => {
          void world.sleep(0.01).then(() => aborting.abort());
          return 1;
        },
        { signal: aborting.signal },
      );
      expect(await failureOf(updating)).toMatchObject({ code: "request-aborted", phase: "uncertain" });
      world.partition([1]);
      expect(await failureOf(map.update("a", () => 2, { timeoutMs: 500 }))).toMatchObject({ phase: "never-sent" });
    });
  });
});

describe("after a member has left or a client is closed", () => {
  test.each(["member", "client"])("a new request to the %s was never sent, or never acquired", async (who) => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const user = who === "member" ? world.member(1) : await world.connect();
      const map = mapOf(user);
      const [queue, counter, lock, election] = [
        user.queue("q"),
        user.counter("c"),
        user.mutex("l"),
        "leave" in user ? user.election("e") : user.election("e"),
      ];
      const [semaphore, barrier] = [user.semaphore("s", { permits: 2 }), user.barrier("b", { parties: 2 })];
      await map.put("a", 1);
      if ("leave" in user) await user.leave();
      else await user.close();
      const code = who === "member" ? "member-left" : "client-closed";
      for (const call of [
        map.get("a"),
        map.put("a", 1),
        map.update("a", () => 2),
        map.delete("a"),
        map.range(),
        counter.add(),
        queue.add("x"),
        queue.size(),
        user.transaction((t) => t.get(map, "a")),
      ])
        expect(await failureOf(call)).toMatchObject({ code, phase: "never-sent" });
      for (const call of [lock.acquire(), queue.take(), semaphore.acquire(), barrier.arrive(), election.lead(() => 1)])
        expect(await failureOf(call)).toMatchObject({ code, phase: "never-acquired" });
    });
  });

  test.each(["member", "client"])(
    "an earlier request to the %s may have been applied, if it changes anything",
    async (who) => {
      const world = simulate({ members: 3 });
      await world.run(async () => {
        const user = who === "member" ? world.member(1) : await world.connect({ machine: 1_000 });
        const map = mapOf(user);
        await map.put("a", 1);
        world.partition([who === "member" ? 1 : 1_000]);
        await world.sleep(100);
        const code = who === "member" ? "member-left" : "client-closed";
        const told = Promise.all([
          failureOf(map.get("a")),
          failureOf(map.put("a", 2)),
          failureOf(map.update("a", () => 2)),
        ]);
        await world.sleep(100);
        if ("leave" in user) await user.leave();
        else await user.close();
        expect(await told).toMatchObject([
          { code, phase: "never-sent" },
          { code, phase: "uncertain" },
          { code, phase: "never-sent" },
        ]);
      });
    },
  );
});

describe("a range", () => {
  test("has bounds as long as a key, and continues after the longest; a longer bound is rejected by its name", async () => {
    const world = simulate({ members: 1 });
    await world.run(async () => {
      const map = mapOf(world.member(1));
      const longest = "k".repeat(512);
      await map.put(longest, 1);
      expect((await map.range({ prefix: longest })).entries).toHaveLength(1);
      expect((await map.range({ from: `${longest}\0` })).entries).toEqual([]);
      for (const name of ["from", "to", "prefix"])
        await expect(map.range({ [name]: "x".repeat(2_000) })).rejects.toThrow(
          `expected ${name} of range() to be a string of`,
        );
      await expect(map.range({ prefix: `${longest}k` })).rejects.toMatchObject({ code: "bad-option" });
    });
  });
});

test("a put of a transaction is leased if it sets leased, and permanent otherwise", async () => {
  const world = simulate({ members: 3 });
  await world.run(async () => {
    const member = world.member(1);
    const map = mapOf(member);
    await map.put("kept", 1, { leased: true });
    await member.transaction(async (transaction) => {
      transaction.put(map, "kept", ((await transaction.get(map, "kept")) ?? 0) + 1);
      transaction.put(map, "leased", 1);
      transaction.put(map, "leased", 2, { leased: true });
    });
    const wrong = { isLeased: true } as never;
    await expect(member.transaction((transaction) => transaction.put(map, "k", 1, wrong))).rejects.toMatchObject({
      code: "bad-option",
    });
    await member.leave();
    expect((await mapOf(world.member(2)).range()).entries.map(({ key }) => key)).toEqual(["kept"]);
  });
});

test("an update without leased makes a leased entry permanent", async () => {
  const world = simulate({ members: 3 });
  await world.run(async () => {
    const map = mapOf(world.member(1));
    for (const key of ["kept", "leased"]) await map.put(key, 1, { leased: true });
    await map.update("kept", () => 2);
    await map.update("leased", () => 2, { leased: true });
    await world.member(1).leave();
    expect((await mapOf(world.member(2)).range()).entries.map(({ key }) => key)).toEqual(["kept"]);
  });
});
