import { expect, test } from "vitest";
import { aligned } from "./aligned.ts";
import { TestedLaboratory } from "./engine/laboratory-under-test.ts";
import { momentsOf } from "./moments.ts";

test("what happens at the same time stands at the same place in all runs, and later is further right", async () => {
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
