/** Checks maps of members in virtual time: their guarantees under crashes, partitions and pauses. */
import { describe, expect, test } from "vitest";
import type { CoordinationError, Member, SharedMap } from "../../src/index.ts";
import { simulate, type World } from "../../src/testing/index.ts";

const mapOf = (world: World, id: number): SharedMap<number> => world.member(id).map<number>("stock");

/** Reads this many changes. */
async function next<T>(changes: AsyncIterator<T>, count: number): Promise<T[]> {
  const read: T[] = [];
  while (read.length < count) {
    const { value, done } = await changes.next();
    if (done === true) break;
    read.push(value);
  }
  return read;
}

test("in a map with a watch on three members, one is killed and restarts, and no watch misses a change", async () => {
  const world = simulate({ members: 3, seed: 7 });
  await world.run(async () => {
    const { revision } = await mapOf(world, 2).range();
    const changes = mapOf(world, 2).watch({ after: revision });
    const first = await mapOf(world, 1).put("apples", 3);
    world.kill(1);
    await mapOf(world, 3).put("pears", 5);
    await world.restart(1);
    expect(await mapOf(world, 1).get("pears")).toBe(5);
    await mapOf(world, 1).delete("apples");
    const seen = await next(changes, 3);
    expect(seen.map(({ type, key }) => `${type} ${key}`)).toEqual(["put apples", "put pears", "delete apples"]);
    const again = await next(mapOf(world, 1).watch({ after: first }), 2);
    expect(again).toEqual(seen.slice(1));
  });
});

test("a watch reports changes from its beginning on, and none from before", async () => {
  const world = simulate({ members: 3, seed: 3 });
  await world.run(async () => {
    const ids = [1, 2, 3];
    for (let number = 0; number < 20; number++) await mapOf(world, 1).put("unwatched", number);
    for (const round of [1, 2]) {
      for (const id of ids) await mapOf(world, id).get("unwatched"); // Afterwards each member has applied all writes.
      const watches = ids.map((id) => mapOf(world, id).watch());
      await mapOf(world, 2).put("watched", round);
      for (const watch of watches) {
        const [change] = await next(watch, 1);
        expect(change).toMatchObject({ type: "put", key: "watched", value: round });
        await watch.return?.();
      }
      await mapOf(world, 3).put("unwatched", round);
    }
  });
});

describe("a map", () => {
  test("returns each value with its revision, and all entries in the order of the keys", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const [one, two] = [mapOf(world, 1), mapOf(world, 2)];
      expect(await one.get("a")).toBeUndefined();
      const revision = await one.put("a", 1);
      expect(await two.entry("a")).toEqual({ key: "a", value: 1, revision });
      const later = await two.put("b", 2);
      expect(later).toBeGreaterThan(revision);
      await two.put("ab", 3);
      const { entries, more } = await one.range({ prefix: "a" });
      expect(entries.map(({ key, value }) => [key, value])).toEqual([
        ["a", 1],
        ["ab", 3],
      ]);
      expect(more).toBe(false);
      const page = await one.range({ limit: 2 });
      expect(page.entries.map(({ key }) => key)).toEqual(["a", "ab"]);
      expect(page.more).toBe(true);
      expect((await one.range({ from: "ab", to: "b" })).entries.map(({ key }) => key)).toEqual(["ab"]);
      expect(await one.delete("a")).toBe(true);
      expect(await two.delete("a")).toBe(false);
      expect(await two.get("a")).toBeUndefined();
    });
  });

  test("is changed by one of several concurrent compare-and-set calls, and by all updates", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const maps = [1, 2, 3].map((id) => mapOf(world, id));
      const won = await Promise.all(maps.map((map, at) => map.compareAndSet("a", 0, at)));
      expect(won.filter((revision) => revision !== null)).toHaveLength(1);
      await maps[0]?.put("sum", 0);
      await Promise.all(maps.flatMap((map) => [map.update("sum", add(1)), map.update("sum", add(10))]));
      expect(await maps[1]?.get("sum")).toBe(33);
      const entry = await maps[2]?.entry("sum");
      expect(await maps[0]?.delete("sum", { ifRevision: 1 })).toBe(false);
      expect(await maps[0]?.delete("sum", { ifRevision: entry?.revision })).toBe(true);
    });
  });

  test("stores JSON and bytes unchanged, and rejects other or too large values", async () => {
    const world = simulate({ members: 1 });
    await world.run(async () => {
      const map = world.member(1).map("any");
      const bytes = new Uint8Array([0, 200, 255]);
      await map.put("bytes", bytes);
      expect(await map.get("bytes")).toEqual(bytes);
      const value = { text: "b", list: [1, null, { deep: true }] };
      await map.put("json", value);
      expect(await map.get("json")).toEqual(value);
      await expect(map.put("x", () => {})).rejects.toMatchObject({ code: "bad-value" });
      await expect(map.put("x", "x".repeat(1_048_575))).rejects.toMatchObject({ code: "too-large" });
      await expect(map.put("", 1)).rejects.toMatchObject({ code: "bad-key" });
      expect(await map.get("x")).toBeUndefined();
    });
  });

  test("rejects a field that is undefined, as queues, machines, channels and clients do", async () => {
    const world = simulate({ members: 1 });
    await world.run(async () => {
      const member = world.member(1);
      const value = { a: undefined };
      const client = await world.connect();
      const machine = { init: () => 0, apply: (n: number) => [n, n] as const };
      const refusals: readonly (readonly [() => Promise<unknown>, string])[] = [
        [() => member.map("any").put("x", value), 'the value of "x"'],
        [() => client.map("any").put("x", value), 'the value of "x"'],
        [() => member.queue("any").add(value), "the item"],
        [() => client.queue("any").add(value), "the item"],
        [() => member.replicated("any", machine).execute(value), "the command"],
        [() => member.channel("links", { order: "fifo" }).send(value), "the payload"],
        [() => member.channel("log", { order: "total", transport: "log" }).send(value), "the payload"],
      ];
      for (const [call, what] of refusals)
        await expect(call()).rejects.toThrow(`expected ${what}.a to be JSON data, got undefined`);
    });
  });

  test("times out without a majority, and works again once there is one", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      await mapOf(world, 1).put("a", 1);
      world.partition([1], [2, 3]);
      await world.sleep(2_000);
      const read = await failureOf(mapOf(world, 1).get("a", { timeoutMs: 500 }));
      expect(read).toMatchObject({ code: "request-timeout", phase: "never-sent" });
      expect(read.message).toContain("1 of 3 members");
      const write = await failureOf(mapOf(world, 1).put("a", 2, { timeoutMs: 500 }));
      expect(write).toMatchObject({ code: "request-timeout", phase: "uncertain" });
      expect(await mapOf(world, 2).put("b", 1)).toBeGreaterThan(0);
      const waiting = mapOf(world, 1).get("b");
      world.heal();
      expect(await waiting).toBe(1);
    });
  });

  test("is not written by an abandoned call after the session of that call has ended", async () => {
    const world = simulate({ members: 3, seed: 35 });
    await world.run(async () => {
      await mapOf(world, 1).put("a", 1);
      const { leader } = world.member(1).status().shared ?? {};
      const cutOff = [1, 2, 3].find((id) => id !== leader) as number;
      await mapOf(world, cutOff).put("a", 2);
      world.partition([cutOff]);
      const error = await failureOf(mapOf(world, cutOff).put("a", 3, { timeoutMs: 500 }));
      expect(error).toMatchObject({ code: "request-timeout", phase: "uncertain" });
      await world.sleep(30_000);
      world.heal();
      await world.sleep(10_000);
      expect(await mapOf(world, cutOff).get("a")).toBe(2);
    });
  });

  test("loses leased entries with their member, and no others", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      await mapOf(world, 1).put("leased", 1, { leased: true });
      await mapOf(world, 1).put("kept", 1);
      const changes = mapOf(world, 2).watch({ key: "leased" });
      await world.sleep(20_000);
      expect(await mapOf(world, 2).get("leased")).toBe(1);
      world.crash(1);
      expect(await next(changes, 1)).toMatchObject([{ type: "delete", key: "leased" }]);
      expect(await mapOf(world, 2).get("kept")).toBe(1);
    });
  });
});

describe("a transaction", () => {
  test("moves values between keys and maps atomically under concurrency", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const accounts = mapOf(world, 1);
      for (const name of ["a", "b", "c"]) await accounts.put(name, 100);
      const move = (member: Member, from: string, to: string): Promise<void> =>
        member.transaction(async (transaction) => {
          const map = member.map<number>("stock");
          const [had, has] = [(await transaction.get(map, from)) ?? 0, (await transaction.get(map, to)) ?? 0];
          transaction.put(map, from, had - 10);
          transaction.put(map, to, has + 10);
        });
      await Promise.all(
        [1, 2, 3].flatMap((id) => [move(world.member(id), "a", "b"), move(world.member(id), "b", "c")]),
      );
      const { entries } = await accounts.range();
      expect(entries.map(({ value }) => value)).toEqual([70, 100, 130]);
    });
  });
});

const add =
  (by: number) =>
  (value = 0): number =>
    value + by;

const failureOf = (work: Promise<unknown>): Promise<CoordinationError> =>
  work.then(
    () => {
      throw new Error("expected a failure");
    },
    (error: unknown) => error as CoordinationError,
  );
