/** Checks locks, elections, semaphores, queues and more on the replicated log of members, in virtual time. */
import { describe, expect, test } from "vitest";
import type { Grant, Leadership, Member } from "../../src/index.ts";
import { simulate, type World } from "../../src/testing/index.ts";

const three = (seed = 1): World => simulate({ members: 3, seed });
const lockAt = (member: Member) => member.mutex("invoice");

describe("a lock on the log", () => {
  test("has one holder at a time, and serves waiters first come, first served, over all members", async () => {
    const world = three();
    await world.run(async () => {
      const order: string[] = [];
      const first = await lockAt(world.member(1)).acquire();
      const wait = async (id: number, name: string): Promise<void> => {
        await lockAt(world.member(id)).use(({ token }) => {
          expect(token).toBeGreaterThan(first.token);
          order.push(name);
        });
      };
      const all: Promise<void>[] = [];
      for (const [id, name] of [
        [2, "a"],
        [3, "b"],
        [2, "c"],
        [1, "d"],
      ] as const) {
        all.push(wait(id, name));
        await world.sleep(100);
      }
      expect(order).toEqual([]);
      await first.release();
      await Promise.all(all);
      expect(order).toEqual(["a", "b", "c", "d"]);
    });
  });

  test.each(["partition", "pause"] as const)(
    "is known to be lost by its holder before another member has it: %s",
    async (trouble) => {
      const world = three(3);
      await world.run(async () => {
        const lost: number[] = [];
        const lock = await lockAt(world.member(1)).acquire();
        lock.signal.addEventListener("abort", () => lost.push(world.now()));
        await world.sleep(20_000);
        expect(lock.isHeld).toBe(true);
        if (trouble === "partition") world.partition([1], [2, 3]);
        else world.pause(1);
        const next = await lockAt(world.member(2)).acquire();
        expect(next.token).toBeGreaterThan(lock.token);
        if (trouble === "partition") expect(lost[0]).toBeLessThan(world.now());
        else world.resume(1);
        expect(lock.isHeld).toBe(false);
        world.heal();
        const again = lockAt(world.member(1)).acquire();
        await next.release();
        expect((await again).token).toBeGreaterThan(next.token);
      });
    },
  );

  test("is passed on when its holder is killed, and after all members have lost power at once", async () => {
    const world = three(5);
    await world.run(async () => {
      const lock = await lockAt(world.member(1)).acquire();
      world.kill(1);
      const next = await lockAt(world.member(2)).acquire();
      expect(next.token).toBeGreaterThan(lock.token);
      for (const id of [2, 3]) world.crash(id);
      await Promise.all([1, 2, 3].map((id) => world.restart(id)));
      expect((await lockAt(world.member(3)).acquire()).token).toBeGreaterThan(next.token);
    });
  });

  test("has at most 1,000 holders and waiters over all members, and errors name the object as the caller does", async () => {
    const world = three();
    await world.run(async () => {
      const given: string[] = [];
      const ask = (id: number) => lockAt(world.member(id)).acquire();
      for (let at = 0; at < 1_000; at++) void ask(1 + (at % 2)).then(() => given.push("lock"), String);
      await world.sleep(5_000);
      await expect(ask(3)).rejects.toMatchObject({
        code: "state-full",
        message: 'the lock "invoice": 1000 calls already hold or wait for it',
      });
      expect(given).toEqual(["lock"]);
      await world.member(1).semaphore("seats", { permits: 3 }).acquire();
      await expect(world.member(2).semaphore("seats", { permits: 4 }).acquire()).rejects.toMatchObject({
        code: "other-setting",
        message: 'a permit from the semaphore "seats": expected a capacity of 3, which is already in use, got 4',
      });
    });
  });

  test("is given up by a caller that stops waiting, and released by a member that leaves", async () => {
    const world = three();
    await world.run(async () => {
      const lock = await lockAt(world.member(1)).acquire();
      await expect(lockAt(world.member(2)).acquire({ timeoutMs: 50 })).rejects.toMatchObject({
        code: "acquire-timeout",
      });
      const stop = new AbortController();
      const aborted = lockAt(world.member(2)).acquire({ signal: stop.signal });
      stop.abort();
      await expect(aborted).rejects.toMatchObject({ code: "acquire-aborted", name: "AbortError" });
      const waiting = lockAt(world.member(3)).acquire();
      const began = world.now();
      await world.member(1).leave();
      expect(lock.signal.reason).toMatchObject({ code: "member-left" });
      expect((await waiting).isHeld).toBe(true);
      expect(world.now() - began).toBeLessThan(1_000);
    });
  });

  test.each([1, 2, 3])(
    "is lost by no other holder when member %d leaves, whether or not it led the log",
    async (leaver) => {
      const world = three(7);
      await world.run(async () => {
        const others = [1, 2, 3].filter((id) => id !== leaver);
        const held = await Promise.all(others.map((id) => world.member(id).mutex(`of ${id}`).acquire()));
        const given = await lockAt(world.member(leaver)).acquire();
        const next = lockAt(world.member(others[0] as number)).acquire();
        await world.sleep(100); // The next member waits for the lock.
        const began = world.now();
        await world.member(leaver).leave();
        expect((await next).token).toBeGreaterThan(given.token);
        expect(world.now() - began).toBeLessThan(100);
        await world.sleep(1_000);
        expect([...held, await next].map(({ isHeld }) => isHeld)).toEqual([true, true, true]);
      });
    },
  );
});

describe("an election on the log", () => {
  const election = (member: Member) =>
    member.election<{ address: string }>("report", { metadata: { address: `host-${member.id}` } });

  test("has one leader at a time, known to all with its metadata, and another leader when that one is killed", async () => {
    const world = three();
    await world.run(async () => {
      const led: Leadership[] = [];
      const work = (leadership: Leadership): Promise<void> => {
        led.push(leadership);
        return new Promise(() => {});
      };
      void election(world.member(1)).lead(work);
      await world.sleep(1_000);
      void election(world.member(2)).lead(work);
      const changes = election(world.member(3)).watch();
      await world.sleep(1_000);
      expect(led).toHaveLength(1);
      expect((await changes.next()).value).toEqual({
        leader: 1,
        token: led[0]?.token,
        metadata: { address: "host-1" },
      });
      world.kill(1);
      await world.sleep(10_000);
      expect(led).toHaveLength(2);
      expect(election(world.member(3)).leader).toBe(2);
      expect(led[1]?.token).toBeGreaterThan(led[0]?.token ?? 0);
    });
  });

  test("passes to another member when the work ends", async () => {
    const world = three();
    await world.run(async () => {
      const first = election(world.member(1)).lead(async () => {
        await world.sleep(500);
        return "done";
      });
      await world.sleep(200);
      const second = election(world.member(2)).lead(() => "also done");
      expect(await first).toBe("done");
      expect(await second).toBe("also done");
      await world.sleep(500);
      expect(election(world.member(3)).leader).toBeNull();
    });
  });
});

test("a semaphore admits as many holders as it has permits, and rejects another number of permits", async () => {
  const world = three();
  await world.run(async () => {
    const held: Grant[] = [];
    const semaphore = (id: number) => world.member(id).semaphore("slots", { permits: 3 });
    for (const id of [1, 2]) held.push(await semaphore(id).acquire());
    const two = semaphore(3).acquire({ permits: 2 });
    await world.sleep(200);
    const one = semaphore(1).acquire();
    await world.sleep(500);
    await held[0]?.release();
    expect((await two).isHeld).toBe(true);
    await held[1]?.release();
    expect((await one).isHeld).toBe(true);
    await Promise.all([two, one].map(async (each) => (await each).release()));
    expect(await semaphore(2).use((grant) => grant.isHeld, { permits: 2 })).toBe(true);
    await semaphore(1).acquire();
    await expect(world.member(2).semaphore("slots", { permits: 4 }).acquire()).rejects.toMatchObject({
      code: "other-setting",
    });
  });
});

test("a read-write lock admits many readers or one writer, and readers do not overtake a writer", async () => {
  const world = three();
  await world.run(async () => {
    const lock = (id: number) => world.member(id).readWriteLock("page");
    const readers = await Promise.all([1, 2, 3].map((id) => lock(id).read()));
    const order: string[] = [];
    const writer = lock(1).write();
    void writer.then(() => order.push("writer"));
    await world.sleep(200);
    const late = lock(2).read();
    void late.then(() => order.push("reader"));
    await world.sleep(200);
    expect(order).toEqual([]);
    for (const reader of readers) await reader.release();
    await (await writer).release();
    await late;
    expect(order).toEqual(["writer", "reader"]);
  });
});

test("a barrier opens for all once all have arrived, repeatedly", async () => {
  const world = three();
  await world.run(async () => {
    const arrive = (id: number) => world.member(id).barrier("start", { parties: 3 }).arrive({ timeoutMs: 5_000 });
    await world.member(1).ready();
    await expect(world.member(1).barrier("start", { parties: 3 }).arrive({ timeoutMs: 100 })).rejects.toThrow();
    const first = await Promise.all([1, 2, 3].map(arrive));
    const second = await Promise.all([1, 2, 3].map(arrive));
    expect(new Set(first).size).toBe(1);
    expect(second[0]).toBeGreaterThan(first[0] as number);
  });
});

test("a queue gives each item to one consumer, in order, and to another one if the first is lost", async () => {
  const world = three();
  await world.run(async () => {
    const queue = (id: number) => world.member(id).queue<string>("orders");
    for (const item of ["a", "b", "c"]) await queue(1).add(item);
    const a = await queue(2).take();
    const b = await queue(3).take();
    expect([a.item, b.item]).toEqual(["a", "b"]);
    await b.done();
    await a.giveBack();
    await world.sleep(200); // The request is in transit, and another member's take may arrive first.
    const again = await queue(3).take();
    expect(again.item).toBe("a");
    expect(again.token).toBeGreaterThan(a.token);
    world.crash(3);
    const later = await queue(1).take();
    expect(later.item).toBe("c");
    expect((await queue(2).take()).item).toBe("a");
    expect(await queue(1).size()).toBe(0);
    await expect(a.done()).rejects.toMatchObject({ code: "released" });
  });
});

test("a counter counts each call once, even if the leader changes", async () => {
  const world = three(9);
  await world.run(async () => {
    const counter = (id: number) => world.member(id).counter("orders");
    const counting = [1, 2, 3].map(async (id) => {
      for (let i = 0; i < 20; i++) await counter(id).add();
    });
    while (world.member(1).status().shared?.leader == null) await world.sleep(10);
    const { leader } = world.member(1).status().shared ?? {};
    world.pause(leader as number);
    await world.sleep(2_000);
    world.resume(leader as number);
    await Promise.all(counting);
    expect(await counter(1).get()).toBe(60);
    await counter(2).set(Number.MAX_SAFE_INTEGER);
    await expect(counter(3).add()).rejects.toMatchObject({ code: "overflow" });
    await expect(counter(3).add(0.5)).rejects.toMatchObject({ code: "bad-option" });
  });
});

test("a state machine of the caller has the same states at every member, also at one that defines it later", async () => {
  const balance = {
    init: () => ({ total: 0 }),
    apply(state: { total: number }, by: number) {
      if (state.total + by < 0) throw new Error("there is not so much");
      return [{ total: state.total + by }, state.total + by] as const;
    },
  };
  const world = three();
  await world.run(async () => {
    const machine = (id: number) => world.member(id).replicated("balance", balance);
    expect(await machine(1).execute(10)).toBe(10);
    expect(await machine(2).execute(-3)).toBe(7);
    await expect(machine(1).execute(-30)).rejects.toMatchObject({ code: "machine-failed" });
    expect(await machine(3).read()).toEqual({ total: 7 });
    world.crash(2);
    await machine(1).execute(1);
    await world.restart(2);
    expect(await machine(2).read()).toEqual({ total: 8 });
  });
});

test.each(["snapshot", "restore"])(
  "a state machine with a function %s is rejected with an explanation",
  async (extra) => {
    const machine = { init: () => 0, apply: (state: number) => [state, state] as const, [extra]: () => 0 };
    const world = three();
    await world.run(() => {
      expect(() => world.member(1).replicated("balance", machine)).toThrow(
        expect.objectContaining({
          code: "bad-option",
          message: `expected the options of replicated() to be among init, apply, got "${extra}": the state is plain data and is saved directly, without such a function`,
        }),
      );
    });
  },
);
