import { expect, test } from "vitest";
import { aligned, momentsOf, stepAt } from "./aligned.ts";
import type { ShownStep } from "./engine/answers.ts";
import { TestedLaboratory } from "./engine/laboratory-under-test.ts";

test("places events of the same time at the same x in all runs, and later ones further right", async () => {
  const laboratory = new TestedLaboratory();
  const found = await laboratory.compare({ protocol: "bully", with: "ring", nodes: "5" });
  const runs = found.flatMap(({ run }) => run ?? []);
  expect(runs).toHaveLength(2);
  const moments = momentsOf(runs);
  const { axes, moments: starts } = aligned(runs, moments);
  const firstAt = (index: number, at: number) => {
    const step = runs[index]?.steps.findIndex((each) => each.at === at) ?? -1;
    return step < 0 ? null : axes[index]?.steps[step];
  };
  let shared = 0;
  for (const [column, at] of moments.entries()) {
    const places = [firstAt(0, at), firstAt(1, at)].filter((place) => place !== null);
    for (const place of places) expect(place).toBe(starts[column]);
    if (places.length === 2) shared++;
  }
  expect(shared).toBeGreaterThan(1);
  for (const [index, { steps }] of runs.entries())
    for (const [place, { at }] of steps.entries()) {
      const next = steps.findIndex((each) => each.at > at);
      if (next > place) expect(axes[index]?.steps[place]).toBeLessThan(axes[index]?.steps[next] ?? 0);
    }
});

const run = (...times: number[]) => ({ steps: times.map((at) => ({ at }) as ShownStep) });

test("shares the moments of all runs, and keeps a run at its last step in between", () => {
  const [slow, quick] = [run(0, 0, 30), run(0, 10)];
  expect(momentsOf([slow, quick])).toEqual([0, 10, 30]);
  expect([-1, 0, 10, 29, 30, 99].map((at) => stepAt(slow, at))).toEqual([-1, 1, 1, 1, 2, 2]);
  expect(stepAt(quick, 30)).toBe(1);
  expect(stepAt(run(), 5)).toBe(-1);
});
