import { expect, test } from "vitest";
import { disagreement } from "./survey.ts";

const member = (id: number, leader: number | null, rest: object = {}) => ({ id, alive: true, leader, ...rest });

test("members disagree where those alive and honest name different leaders", () => {
  expect(disagreement([member(0, 1), member(1, 1)])).toBeNull();
  expect(disagreement([member(0, 1), member(1, null)])).toBe("node 0 says 1, node 1 knows of none");
  expect(disagreement([member(0, 1), member(1, 2, { alive: false })])).toBeNull();
  expect(disagreement([member(0, 1), member(1, 2, { byzantine: "lies" })])).toBeNull();
  expect(disagreement([])).toBeNull();
});
