import { expect, test } from "vitest";
import type { Judged } from "./scenario/index.ts";
import { alike, disappointment, endOf, playSeveral, scenarioOf, staged } from "./simulate.ts";

const judged = (what: string, passed: boolean, actual: unknown = null): Judged => ({
  what,
  expected: null,
  actual,
  passed,
});

test("names violated properties if nothing else failed, otherwise the number of unmet expectations", () => {
  expect(disappointment({ expectations: [judged("violated", true, [])] })).toBeNull();
  expect(disappointment({ expectations: [judged("violated", false, ["ME1", "ME2"]), judged("leader", true)] })).toBe(
    "violated: ME1, ME2",
  );
  const several = [judged("leader", false), judged("violated", false, ["ME1"]), judged("messages", true)];
  expect(disappointment({ expectations: several })).toBe("2 of 3 expectations not met, first leader");
  // An expected violation did not occur.
  expect(disappointment({ expectations: [judged("violated", false, [])] })).toBe(
    "1 of 1 expectations not met, first violated",
  );
});

test("groups the nodes with equal outcomes", () => {
  expect(alike({ 0: ["a"], 1: null, 2: ["a"] })).toEqual([
    { value: ["a"], nodes: [0, 2] },
    { value: null, nodes: [1] },
  ]);
});

test("accepts a time as the end of a run, but a number of entries only for a recording", () => {
  expect([endOf(undefined), endOf({ ms: 5 })]).toEqual([{}, { until: 5 }]);
  expect(() => endOf({ ms: 0 })).toThrow("expected --until to be milliseconds above 0, got 0");
  expect(() => endOf({ entries: 57 })).toThrow(/a number of entries requires --from, got .#57/);
});

test("refuses more runs than there are seeds", () => {
  const last = staged({ scenario: scenarioOf({ protocol: "bully", nodes: 2, seed: 2 ** 32 - 2 }), place: () => "" });
  const slices = playSeveral(last, 3, { deliveredOnly: false });
  expect(() => slices.next(true)).toThrow("at most 4294967293, since each of the 3 runs uses the next seed");
});
