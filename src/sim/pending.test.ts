import { expect, it } from "vitest";
import { PendingPool } from "./pending.ts";

const taken = (pool: PendingPool<{ state: object }>): number =>
  pool.take("command", undefined as never, 0, 0, "", null);

it("holds only so much at a time, and takes more once something has left", () => {
  const pool = new PendingPool<{ state: object }>(2);
  const first = taken(pool);
  taken(pool);
  expect(() => taken(pool)).toThrow("expected at most 2 messages and timers to be under way at a time, got more");
  pool.release(first);
  expect(taken(pool)).toBe(first);
  expect(() => taken(pool)).toThrow("use fewer nodes");
});
