import { expect, test } from "vitest";
import type { ShownStep } from "./engine/answers.ts";
import { momentsOf, stepAt } from "./moments.ts";

const run = (...times: number[]) => ({ steps: times.map((at) => ({ at }) as ShownStep) });

test("runs share their moments; between its own, a run stands where it was", () => {
  const [slow, quick] = [run(0, 0, 30), run(0, 10)];
  expect(momentsOf([slow, quick])).toEqual([0, 10, 30]);
  expect([-1, 0, 10, 29, 30, 99].map((at) => stepAt(slow, at))).toEqual([-1, 1, 1, 1, 2, 2]);
  expect(stepAt(quick, 30)).toBe(1);
  expect(stepAt(run(), 5)).toBe(-1);
});
