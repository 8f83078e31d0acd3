import { expect, test, vi } from "vitest";
import { RecentTrace } from "./recent-trace.ts";

const bounds = { ms: 1_000, lines: 5, length: 100 };

test("a reader gets unread lines, in order", () => {
  const trace = new RecentTrace(bounds);
  for (const line of ["a", "b", "c"]) trace.add(line);
  expect(trace.since(0, 2)).toEqual(["a", "b"]);
  expect(trace.since(2, 2)).toEqual(["c"]);
  expect(trace.since(trace.end, 2)).toEqual([]);
});

test("drops lines above the limits, and notifies a reader that missed them", () => {
  const trace = new RecentTrace(bounds);
  for (const line of ["a", "b", "c", "d", "e", "f"]) trace.add(line);
  expect(trace.lines).toEqual(["b", "c", "d", "e", "f"]);
  expect(trace.since(0, 9)).toBeNull();
  expect(trace.since(1, 9)).toEqual(["b", "c", "d", "e", "f"]);

  trace.add("x".repeat(99));
  expect(trace.lines).toEqual(["f", "x".repeat(99)]);
});

test("positions stay valid after many dropped lines", () => {
  const trace = new RecentTrace(bounds);
  for (let i = 0; i < 10_000; i += 1) trace.add(String(i));
  expect(trace.end).toBe(10_000);
  expect(trace.since(9_997, 9)).toEqual(["9997", "9998", "9999"]);
});

test("drops a line that arrived too long ago", () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  try {
    const trace = new RecentTrace(bounds);
    trace.add("old");
    vi.advanceTimersByTime(600);
    trace.add("newer");
    expect(trace.lines).toEqual(["old", "newer"]);
    vi.advanceTimersByTime(600);
    trace.add("newest");
    expect(trace.lines).toEqual(["newer", "newest"]);
  } finally {
    vi.useRealTimers();
  }
});
