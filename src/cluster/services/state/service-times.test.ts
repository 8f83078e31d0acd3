/** What is measured of a snapshot: each step in which something of one is done. */
import { expect, test } from "vitest";
import { newCounts } from "../../../runtime/metrics.ts";
import { ServiceTimes } from "./service-times.ts";

test("a snapshot that is written in several steps is measured in each, and no other step is", () => {
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
  step(64_000, 9, 0); // At once.
  expect(log.snapshots).toMatchObject({ count: 4, seconds: 2 + 8 + 16 + 64 });
});
