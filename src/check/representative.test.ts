import { describe, expect, it } from "vitest";
import { closedUp, countsIn, lowestCount, recounted } from "./representative.ts";

const data = {
  round: 7,
  ballot: { round: 5, node: 0 },
  log: [{ round: 9, value: "round" }],
  promised: null,
  rounds: 1,
};

it("finds the lowest of the named fields, at any depth", () => {
  expect(lowestCount(data, ["round"])).toBe(5);
  expect(lowestCount(data, ["round", "rounds"])).toBe(1);
  expect(lowestCount([null, "round", 3], ["round"])).toBe(Number.POSITIVE_INFINITY);
});

it("replaces only these fields", () => {
  expect(recounted(data, ["round"], (count) => count - 5)).toEqual({
    round: 2,
    ballot: { round: 0, node: 0 },
    log: [{ round: 4, value: "round" }],
    promised: null,
    rounds: 1,
  });
  expect(data.round).toBe(7);
});

describe("rounds", () => {
  it("are found by the names of their fields", () => {
    expect(countsIn({ round: 7, requestId: { round: 5 }, queue: [{ round: 6, run: 1 }] }, ["round"])).toEqual([
      7, 5, 6,
    ]);
  });

  it("have gaps of more than three reduced by multiples of two", () => {
    const closed = (...counts: number[]) => [...closedUp(counts)].map(([, after]) => after);
    expect(closed(0, 1, 2, 5)).toEqual([0, 1, 2, 5]);
    expect(closed(0, 4, 9)).toEqual([0, 2, 5]);
    expect(closed(11, 10)).toEqual([2, 3]);
    expect(closed(101, 100)).toEqual([2, 3]);
  });
});
