import fc from "fast-check";
import { expect, it } from "vitest";
import { eventQueue, PendingPool } from "./event-queue.ts";

const scripts = fc.array(fc.oneof({ weight: 3, arbitrary: fc.nat(9) }, fc.constant("pop" as const)), {
  minLength: 1,
  maxLength: 600,
  size: "max",
});

it("returns events by time, and simultaneous ones in the order of insertion", () => {
  fc.assert(
    fc.property(scripts, (script) => {
      const queue = eventQueue();
      const model: { at: number; order: number }[] = [];
      for (const [order, action] of script.entries()) {
        if (action !== "pop") {
          queue.push(action, order);
          model.push({ at: action, order });
          model.sort((a, b) => a.at - b.at || a.order - b.order);
        } else if (model.length > 0) expect(queue.pop()).toBe(model.shift()?.order);
        expect(queue.size).toBe(model.length);
        expect(queue.next()).toBe(model[0]?.at ?? Number.POSITIVE_INFINITY);
      }
    }),
    { numRuns: 60 },
  );
});

it("grows while a lane wraps around its end", () => {
  const queue = eventQueue();
  for (let i = 0; i < 60; i++) queue.push(i, i);
  for (let i = 0; i < 50; i++) expect(queue.pop()).toBe(i);
  for (let i = 60; i < 300; i++) queue.push(i, i);
  for (let i = 50; i < 300; i++) expect(queue.pop()).toBe(i);
  expect(queue.size).toBe(0);
});

const taken = (pool: PendingPool<{ state: object }>): number =>
  pool.take("command", undefined as never, 0, 0, "", null);

it("has a capacity, and accepts more once an event has left", () => {
  const pool = new PendingPool<{ state: object }>(2);
  const first = taken(pool);
  taken(pool);
  expect(() => taken(pool)).toThrow("expected at most 2 messages and timers to be pending at a time, got more");
  pool.release(first);
  expect(taken(pool)).toBe(first);
  expect(() => taken(pool)).toThrow("use fewer nodes");
});
