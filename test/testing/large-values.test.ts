/** Checks values far larger than one command of the log, for members and clients, in virtual time. */
import { expect, test } from "vitest";
import { FRAGMENT_CHARS, inFragments, MAX_WORD_CHARS } from "../../src/cluster/clients/client-words.ts";
import type { StateMachine } from "../../src/cluster/services/state/state-api.ts";
import type { Change } from "../../src/index.ts";
import { simulate } from "../../src/testing/index.ts";

const MAX_VALUE_BYTES = 1_048_576;
/** The largest accepted value: its JSON, including the quotes, has exactly the maximum size. */
const LARGEST = "x".repeat(MAX_VALUE_BYTES - 2);
const WITHIN = { timeoutMs: 60_000 };

/** A state machine that stores the lengths of its inputs. */
const lengths: StateMachine<number[], string, number> = {
  init: () => [],
  apply: (state, command) => [[...state, command.length], command.length],
};

/** Reads this many changes, and records the length and the end of each value. */
async function readInto(seen: string[], changes: AsyncIterable<Change<string>>, count: number): Promise<void> {
  for await (const change of changes) {
    seen.push(change.type === "put" ? `${change.value.length} ${change.value.at(-1)}` : "deleted");
    if (seen.length === count) break;
  }
}

test("a value of many commands works with all shared objects, for members and clients", () =>
  goThrough("x".repeat(150_000)));
test("so does the largest value, and a larger one is rejected", { tags: ["long"] }, () => goThrough(LARGEST));

/** Sends large values through maps, compare-and-set, transactions, queues, state machines and watches. */
async function goThrough(large: string): Promise<void> {
  const world = simulate({ members: 3, seed: 5 });
  await world.run(async () => {
    const client = await world.connect({ members: [2] });
    for (const user of [world.member(1), client]) {
      const map = user.map<string>("large");
      const { revision } = await map.range();
      const seen: string[][] = [[], []];
      const readers = [world.member(3), client].map((reader, at) =>
        readInto(seen[at] as string[], reader.map<string>("large").watch({ after: revision }), 4),
      );
      await map.put("a", "begin", WITHIN); // Unread changes are discarded to make room for large ones.
      while (seen.some(({ length }) => length === 0)) await world.sleep(10);
      const put = await map.put("a", large, WITHIN);
      expect(await map.compareAndSet("a", put - 1, "lost", WITHIN)).toBeNull();
      expect(await map.compareAndSet("a", put, `${large.slice(1)}y`, WITHIN)).not.toBeNull();
      await user.transaction(async (transaction) => {
        const found = (await transaction.get(map, "a")) ?? "";
        transaction.put(map, "a", found.replace("y", "z"));
      }, WITHIN);
      expect(await map.get("a", WITHIN)).toBe(`${large.slice(1)}z`);
      await Promise.all(readers);
      const wanted = ["5 n", ...["x", "y", "z"].map((end) => `${large.length} ${end}`)];
      expect(seen).toEqual([wanted, wanted]);
      const queue = user.queue<string>("large");
      await queue.add(large, WITHIN);
      const item = await queue.take(WITHIN);
      expect(item.item === large).toBe(true);
      await item.done(WITHIN);
      await map.delete("a", WITHIN);
    }
    expect(await world.member(1).replicated("lengths", lengths).execute(large, WITHIN)).toBe(large.length);
    await world.member(3).replicated("lengths", lengths).execute("abc", WITHIN);
    expect(await world.member(3).replicated("lengths", lengths).read(WITHIN)).toEqual([large.length, 3]);
    const larger = world.member(1).map("large").put("a", `${LARGEST}x`);
    await expect(larger).rejects.toMatchObject({ code: "too-large" });
    await expect(client.map("large").put("a", `${LARGEST}x`)).rejects.toMatchObject({ code: "too-large" });
    await client.close();
  });
}

test("a member that is killed while it receives large values has all of them after its restart", async () => {
  const world = simulate({ members: 3, seed: 9 });
  await world.run(async () => {
    const map = world.member(1).map<string>("large");
    const writing = Promise.all(["a", "b", "c"].map((key) => map.put(key, key + LARGEST.slice(1), WITHIN)));
    await world.sleep(5);
    world.kill(3);
    await writing;
    await world.restart(3);
    for (const key of ["a", "b", "c"])
      expect((await world.member(3).map<string>("large").get(key, WITHIN)) === key + LARGEST.slice(1)).toBe(true);
  });
});

test("thirty concurrent large values count as thirty calls, and none exceeds the limit", async () => {
  const world = simulate({ members: 3, seed: 5 });
  await world.run(async () => {
    const map = world.member(1).map<string>("large");
    const value = "x".repeat(1_000_000);
    const writes = Array.from({ length: 30 }, () => map.put("same", value, WITHIN));
    expect(new Set(await Promise.all(writes)).size).toBe(30);
  });
});

test("a long message to a client is split into correct fragments, and a short one is not split", () => {
  expect([...inFragments("short")]).toEqual(["short"]);
  for (const unit of ["x", '"', "a🦊"]) {
    const word = JSON.stringify({ text: unit.repeat(100_000) });
    const fragments = [...inFragments(word)].map(
      (fragment) => JSON.parse(fragment) as { isLast: boolean; text: string },
    );
    expect(fragments.map(({ text }) => text).join("") === word).toBe(true);
    expect(fragments.filter(({ isLast }) => isLast)).toEqual([fragments.at(-1)]);
    expect(Math.max(...fragments.map(({ text }) => text.length))).toBeLessThanOrEqual(FRAGMENT_CHARS);
  }
  expect(MAX_WORD_CHARS).toBeGreaterThan(8 * 2 * MAX_VALUE_BYTES);
});
