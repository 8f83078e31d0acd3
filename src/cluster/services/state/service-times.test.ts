/** Checks the measurement of steps that work on a snapshot. */
import { expect, test } from "vitest";
import { newCounts } from "../../../runtime/metrics.ts";
import { ServiceTimes } from "./service-times.ts";

test("measures each step of a snapshot that takes several, and no other step", () => {
  let now = 0;
  const { log } = newCounts();
  const times = new ServiceTimes({ now: () => now }, log);
  const step = (ms: number, snapshot: number, written: number): void => {
    times.stepBegins();
    now += ms;
    times.stepEnds(snapshot, written);
  };
  step(1_000, 0, 0);
  step(2_000, 0, 65_536);
  step(4_000, 0, 65_536);
  step(8_000, 0, 131_072);
  step(16_000, 7, 0);
  step(32_000, 7, 0);
  step(64_000, 9, 0); // All in one step.
  expect(log.snapshots).toMatchObject({ count: 4, seconds: 2 + 8 + 16 + 64 });
});
