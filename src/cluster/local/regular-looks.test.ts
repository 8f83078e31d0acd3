import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RegularLooks } from "./regular-looks.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

test("continues after a failed check", async () => {
  let count = 0;
  const looks = new RegularLooks(() => {
    count += 1;
    return count === 1 ? Promise.reject(new Error("no more files to open")) : Promise.resolve();
  }, 100);
  await looks.now();
  await looks.now();
  expect(count).toBe(2);
});

test("skips periodic checks while one runs; an explicit call gets its own", async () => {
  const ends: (() => void)[] = [];
  const looks = new RegularLooks(() => new Promise((resolve) => ends.push(resolve)), 100);
  looks.start();
  vi.advanceTimersByTime(1_000);
  await turn();
  expect(ends).toHaveLength(1);

  const asked = looks.now();
  ends[0]?.();
  await turn();
  expect(ends).toHaveLength(2);
  ends[1]?.();
  await asked;

  vi.advanceTimersByTime(100);
  await turn();
  expect(ends).toHaveLength(3);
  looks.stop();
});
