import { describe, expect, test } from "vitest";
import { wallClock, wallClockFrom } from "./wall-clock.ts";

const HOUR_MS = 3_600_000;

/** Creates a clock on a machine whose true time is `time.now`. The process started measuring at a different time. */
function clockUnderTest(began = 5_000.7) {
  const time = { now: 1_000_000.4 };
  const now = wallClockFrom({ system: () => Math.floor(time.now), steady: () => time.now - began });
  return { time, now };
}

describe("the wall clock", () => {
  test("is finer than the system clock, and two processes soon agree to a tenth of a millisecond", () => {
    const early = clockUnderTest(123.456);
    const late = clockUnderTest(999_990.9);
    for (let step = 0; step < 200; step++) {
      early.time.now += 0.07;
      late.time.now += 0.07;
      early.now();
      late.now();
    }
    expect(early.now()).toBeCloseTo(early.time.now, 0);
    expect(Math.abs(early.now() - late.now())).toBeLessThan(0.1);
    expect(Math.abs(early.now() - early.time.now)).toBeLessThan(0.1);
  });

  test.each([-99, -1, 1, 60])("never goes back when the system clock is corrected by %i ms", (correction) => {
    const time = { system: 1_000_000, steady: 5_000 };
    const now = wallClockFrom({ system: () => time.system, steady: () => time.steady });
    const before = now();
    time.system += correction;
    time.steady += 0.5;
    expect(now()).toBeGreaterThanOrEqual(before);
  });

  test.each([8 * HOUR_MS, -HOUR_MS, -150])("follows the system clock when it is %i ms away, and continues", (jump) => {
    const time = { system: 1_000_000, steady: 5_000 };
    const now = wallClockFrom({ system: () => time.system, steady: () => time.steady });
    now();
    time.system += jump;
    expect(Math.abs(now() - time.system)).toBeLessThanOrEqual(1);
    time.steady += 2.5;
    time.system += 2;
    expect(Math.abs(now() - time.system)).toBeLessThanOrEqual(1);
  });

  test("is close to the system time", () => {
    const before = Date.now();
    const said = wallClock();
    expect(said).toBeGreaterThanOrEqual(before - 1);
    expect(said).toBeLessThanOrEqual(Date.now() + 1); // This holds even if the process was paused in between.
  });
});
