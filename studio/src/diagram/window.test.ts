import { describe, expect, test } from "vitest";
import { Inkwell } from "../../../src/trace/diagram/ink.ts";
import { Chronicle } from "../history/chronicle.ts";
import { clusterOf, send } from "../history/fixtures.ts";
import { axisOf, durationText, niceStep } from "./axis.ts";
import { lastBurst, subjectOf } from "./bursts.ts";
import { framing, panned, SHORTEST_MS, within, zoomed } from "./window.ts";

describe("the window", () => {
  test("zooms around the moment under the pointer", () => {
    const near = zoomed({ from: 0, spanMs: 1_000 }, 250, 0.1);
    expect(near).toEqual({ from: 225, spanMs: 100 });
    expect((250 - near.from) / near.spanMs).toBe(0.25);
  });

  test("has a maximum zoom", () => {
    expect(zoomed({ from: 0, spanMs: 1 }, 0, 0.001).spanMs).toBe(SHORTEST_MS);
  });

  test("frames a burst with a margin on both sides", () => {
    const { from, spanMs } = framing(1_000, 1_100);
    expect([from, spanMs]).toEqual([988, 124]);
  });

  test("stays within the known range", () => {
    const window = { from: 500, spanMs: 100 };
    expect(within(panned(window, 1e9), 0, 1_000).from).toBeCloseTo(907);
    expect(within(panned(window, -1e9), 0, 1_000).from).toBe(-10);
  });
});

describe("the axis", () => {
  test("steps by 1, 2 or 5 times a power of ten", () => {
    expect([0.013, 0.3, 4, 1_100].map(niceStep)).toEqual([0.02, 0.5, 5, 2_000]);
  });

  test("counts from the beginning of the framed range when zoomed in", () => {
    const { ticks, origin } = axisOf(999, 1_004, 500, 1_000);
    expect(origin).toBe(1_000);
    expect(ticks.map(({ text }) => text)).toEqual(["−1 ms", "0", "+1 ms", "+2 ms", "+3 ms", "+4 ms"]);
  });

  test("formats durations", () => {
    expect([0.4123, 4.117, 37.04, 352.4, 1_234].map(durationText)).toEqual([
      "412 µs",
      "4.12 ms",
      "37.0 ms",
      "352 ms",
      "1.2 s",
    ]);
  });
});

test("takes the last exchange as the last burst, not a late single message", () => {
  const entries = [send(0, 0, 1), send(5_000, 0, 1), send(5_180, 1, 0, "answer"), send(9_000, 0, 1)];
  const burst = lastBurst(new Chronicle(clusterOf([1, 1], 9_000), entries).messages);
  expect(burst && [burst.from, burst.to, subjectOf(burst)]).toEqual([5_000, 5_180, "election"]);
});

test("gives every type its own ink, as long as there are enough", () => {
  const inkwell = new Inkwell();
  const names = ["a", "b", "c", "d", "e", "f", "g", "h"];
  expect(new Set(names.map((name) => inkwell.of(name).slot)).size).toBe(8);
  expect(inkwell.of("a")).toBe(inkwell.of("a"));
});
