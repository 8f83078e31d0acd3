import { describe, expect, test } from "vitest";
import { wallClock, wallClockFrom } from "./wall-clock.ts";

const HOUR_MS = 3_600_000;

function clockUnderTest() {
  const time = { system: 1_000_000, steady: 5_000 };
  return { time, now: wallClockFrom({ system: () => time.system, steady: () => time.steady }) };
}

describe("the wall clock", () => {
  test("goes with the steady time, in fractions of a millisecond", () => {
    const { time, now } = clockUnderTest();
    expect(now()).toBe(1_000_000);
    time.steady += 0.25;
    expect(now()).toBe(1_000_000.25);
  });

  test.each([-99, -1, 1, 100])("does not jump when the system's clock is corrected by %i ms", (correction) => {
    const { time, now } = clockUnderTest();
    time.system += correction;
    time.steady += 0.5;
    expect(now()).toBe(1_000_000.5);
  });

  test.each([8 * HOUR_MS, -HOUR_MS, 101])("follows the system's clock when it is %i ms away, and goes on", (jump) => {
    const { time, now } = clockUnderTest();
    time.system += jump;
    expect(now()).toBe(1_000_000 + jump);
    time.steady += 2.5;
    expect(now()).toBe(1_000_002.5 + jump);
  });

  test("says what the system says, give or take", () => {
    expect(Math.abs(wallClock() - Date.now())).toBeLessThanOrEqual(101);
  });
});
