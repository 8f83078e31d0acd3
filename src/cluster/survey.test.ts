import { expect, test } from "vitest";
import { disagreement, knowOfNone } from "./survey.ts";

const member = (id: number, leader: number | null, rest: object = {}) => ({ id, alive: true, leader, ...rest });

test("members disagree if honest ones that are alive name different leaders", () => {
  expect(disagreement([member(0, 1), member(1, 1)])).toBeNull();
  expect(disagreement([member(0, 1), member(1, null)])).toBe("node 0 names 1, node 1 names no leader");
  expect(disagreement([member(0, 1), member(1, 2, { alive: false })])).toBeNull();
  expect(disagreement([member(0, 1), member(1, 2, { byzantine: "lies" })])).toBeNull();
  expect(disagreement([])).toBeNull();
});

test("members know no leader if no honest one that is alive does", () => {
  expect(knowOfNone([member(0, null), member(1, null)])).toBe(true);
  expect(knowOfNone([member(0, null), member(1, 1)])).toBe(false);
  expect(knowOfNone([member(0, null), member(1, 1, { alive: false }), member(2, 2, { byzantine: "lies" })])).toBe(true);
  expect(knowOfNone([])).toBe(false);
});
