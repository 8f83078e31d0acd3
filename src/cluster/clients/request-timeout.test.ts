import { expect, it } from "vitest";
import { z } from "zod";
import { firstProblem } from "../first-problem.ts";
import { timeoutMs } from "./request-timeout.ts";

const body = z.strictObject({ timeoutMs });

it.each([
  [600_001, "expected timeoutMs to be a number of milliseconds of at most 600000, which is 10 minutes, got 600001"],
  [0, "expected timeoutMs to be a number of milliseconds above 0, got 0"],
  ["5s", 'expected timeoutMs to be a number of milliseconds, got "5s"'],
])("rejects %j with the expected value", (given, complaint) => {
  const wrong = { timeoutMs: given };
  const { error } = body.safeParse(wrong);
  expect(error && firstProblem(error, wrong, "the body")).toBe(complaint);
});

it("accepts ten minutes, and no timeout", () => {
  for (const right of [{ timeoutMs: 600_000 }, {}]) expect(body.safeParse(right).data).toEqual(right);
});
