import { expect, it } from "vitest";
import { lowered, lowestCount } from "./counters.ts";

const data = {
  round: 7,
  ballot: { round: 5, node: 0 },
  log: [{ round: 9, value: "round" }],
  promised: null,
  rounds: 1,
};

it("finds the lowest of the named fields, wherever they stand", () => {
  expect(lowestCount(data, ["round"])).toBe(5);
  expect(lowestCount(data, ["round", "rounds"])).toBe(1);
  expect(lowestCount([null, "round", 3], ["round"])).toBe(Number.POSITIVE_INFINITY);
});

it("lowers them, and nothing else", () => {
  expect(lowered(data, ["round"], 5)).toEqual({
    round: 2,
    ballot: { round: 0, node: 0 },
    log: [{ round: 4, value: "round" }],
    promised: null,
    rounds: 1,
  });
  expect(data.round).toBe(7);
});
