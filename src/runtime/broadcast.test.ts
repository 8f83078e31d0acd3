import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { type Broadcast, broadcast } from "./broadcast.ts";

const EVERY_MS = 1;

function listening<T>(to: Broadcast<T>) {
  const left = new AbortController();
  const batches = to.listen({ everyMs: EVERY_MS, signal: left.signal });
  const first = batches.next();
  return { left, batches, first };
}

describe("a broadcast", () => {
  test("serializes nothing without listeners", () => {
    const to = broadcast<{ toJSON(): string }>(10);
    to.takeOpening();
    expect(to.wanted).toBe(false);
    to.publish({
      toJSON() {
        throw new Error("serialized a line although there is no reader");
      },
    });
    expect(to.listeners).toBe(0);
  });

  test("keeps the opening for the first caller", () => {
    const to = broadcast<{ n: number }>(10);
    expect(to.wanted).toBe(true);
    to.publish({ n: 1 });
    to.publish({ n: 2 });
    expect(to.takeOpening()).toEqual(['{"n":1}\n', '{"n":2}\n']);
    to.publish({ n: 3 });
    expect(to.takeOpening()).toEqual([]);
  });

  test("drops the opening after some time", () => {
    vi.useFakeTimers();
    try {
      const to = broadcast<{ n: number }>(10);
      to.publish({ n: 1 });
      vi.advanceTimersByTime(10_001);
      expect(to.wanted).toBe(false);
      expect(to.takeOpening()).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("drops an opening that is too long", () => {
    const to = broadcast<string>(1_000);
    for (let i = 0; i < 10; i++) to.publish("x".repeat(2 ** 20));
    expect(to.wanted).toBe(false);
    expect(to.takeOpening()).toEqual([]);
  });

  test("gives every listener the lines since it began to listen", async () => {
    const to = broadcast<{ n: number }>(10);
    const early = listening(to);
    to.publish({ n: 1 });
    const late = listening(to);
    to.publish({ n: 2 });
    expect((await early.first).value).toEqual({ lines: ['{"n":1}\n', '{"n":2}\n'], dropped: 0 });
    expect((await late.first).value).toEqual({ lines: ['{"n":2}\n'], dropped: 0 });
    to.publish({ n: 3 });
    expect((await early.batches.next()).value).toEqual({ lines: ['{"n":3}\n'], dropped: 0 });
    for (const { left, batches } of [early, late]) {
      left.abort();
      await batches.return();
    }
  });

  test("serializes an item when it is published", async () => {
    const to = broadcast<{ n: number }>(10);
    const { first, left, batches } = listening(to);
    const item = { n: 1 };
    to.publish(item);
    item.n = 2;
    expect((await first).value).toEqual({ lines: ['{"n":1}\n'], dropped: 0 });
    left.abort();
    await batches.return();
  });

  test("drops lines that a slow listener has no room for, and reports their number after the earlier ones", async () => {
    const to = broadcast<number>(3);
    const { first, left, batches } = listening(to);
    for (const n of [1, 2, 3, 4, 5]) to.publish(n);
    expect((await first).value).toEqual({ lines: ["1\n", "2\n", "3\n"], dropped: 2 });
    to.publish(6);
    expect((await batches.next()).value).toEqual({ lines: ["6\n"], dropped: 0 });
    left.abort();
    await batches.return();
  });

  test("limits the queue by length as well, and leaves one gap at the end", async () => {
    const to = broadcast<string>(1_000);
    const { first, left, batches } = listening(to);
    const long = "x".repeat(2 ** 20);
    for (let i = 0; i < 10; i++) to.publish(long);
    to.publish("short");
    const { lines, dropped } = (await first).value ?? { lines: [], dropped: 0 };
    expect(lines.map(({ length }) => length)).toEqual([long.length + 3, long.length + 3, long.length + 3]);
    expect(dropped).toBe(8);
    left.abort();
    await batches.return();
  });

  test.each([1, 30_000])("releases a listener that leaves while it waits %i ms", async (everyMs) => {
    const to = broadcast<number>(3);
    const left = new AbortController();
    const batches = to.listen({ everyMs, signal: left.signal });
    const next = batches.next();
    expect(to.listeners).toBe(1);
    await sleep(5); // This covers several empty rounds, or part of one.
    left.abort();
    expect(await next).toEqual({ value: undefined, done: true });
    expect(to.listeners).toBe(0);
  });

  test("releases a listener that stops reading", async () => {
    const to = broadcast<number>(3);
    const { first, batches } = listening(to);
    to.publish(1);
    await first;
    await batches.return();
    expect(to.listeners).toBe(0);
  });
});
