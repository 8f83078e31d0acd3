/** Tests the tours. The runs themselves answer the questions, so no answers are stored. */
import { describe, expect, it, test } from "vitest";
import { TestedLaboratory } from "../engine/laboratory-under-test.ts";
import texts from "./texts.json" with { type: "json" };
import { linkProblem, placesOf, rightOf, verdictText } from "./tour.ts";
import { keysOf, tours } from "./tours.ts";

const laboratory = new TestedLaboratory();

/** Tours with quick runs. The others are long tests, because some of their runs take seconds. */
const QUICK: ReadonlySet<string> = new Set(["one-lap"]);

describe.each(tours)("the tour $name", (tour) => {
  it("leads to existing places of its runs, shows existing fields, and asks a question that the run answers", {
    tags: QUICK.has(tour.name) ? [] : ["long"],
  }, async () => {
    const runs = [];
    for (const words of tour.runs) runs.push(await laboratory.run(words));
    const places = placesOf(tour, runs);
    expect(tour.steps.flatMap(({ at }, index) => (places[index] === null ? [at] : []))).toEqual([]);

    const looks = [];
    for (const [which, words] of tour.runs.entries()) {
      await laboratory.run(words);
      for (const [index, { run = 0 }] of tour.steps.entries())
        if (run === which) looks[index] = await laboratory.look(places[index] as number);
    }
    for (const [index, { run = 0, nodes, fields = [] }] of tour.steps.entries()) {
      const all = looks[index]?.nodes ?? [];
      expect(all.map(({ node }) => node)).toEqual(expect.arrayContaining([...nodes]));
      expect(looks[index]?.hasStates, `states in run ${run}`).toBe(true);
      const paths = all
        .filter(({ node }) => nodes.includes(node))
        .flatMap((node) => node.fields.map(({ path }) => path));
      for (const field of fields)
        expect(
          paths.some((path) => path === field || path.startsWith(`${field}.`)),
          `${tour.name} ${index + 1} ${field}`,
        ).toBe(true);
    }

    const asked = tour.steps.flatMap(({ ask }, index) => (ask === undefined ? [] : [index]));
    expect(asked).toHaveLength(1);
    const [step] = asked as [number];
    const [{ ask = [], run = 0 }, following] = tour.steps.slice(step) as [
      (typeof tour.steps)[number],
      (typeof tour.steps)[number],
    ];
    const target = following.run ?? 0;
    const right = rightOf(ask, {
      run: runs[target] as (typeof runs)[number],
      after: target === run ? (places[step] as number) : -1,
      place: places[step + 1] as number,
      headline: looks[step + 1]?.headline ?? "",
    });
    expect(right).toHaveLength(1);
    expect(tour.steps.length).toBeGreaterThanOrEqual(5);
    expect(tour.steps.length).toBeLessThanOrEqual(10);
  });
});

test("has a text for every key, and no unused text", () => {
  expect(Object.keys(texts).toSorted()).toEqual(tours.flatMap(keysOf).toSorted());
  for (const text of Object.values(texts)) expect(text.trim()).not.toBe("");
});

test.each(tours)("gives distinct verdicts in whole sentences for $name", (tour) => {
  const keys = tour.steps.flatMap(({ ask = [] }) => ask.map(({ key }) => key));
  const verdicts = keys.flatMap((said) => keys.map((right) => verdictText(tour, said, right)));
  expect(new Set(verdicts).size).toBe(keys.length ** 2);
  for (const verdict of verdicts) {
    expect(verdict).toMatch(
      verdict.startsWith("Right") ? /^Right: .*[.!?]$/ : /^You said: .*[.!?] The run shows: .*[.!?]$/,
    );
    expect(verdict).not.toMatch(/[.!?]{2}/);
  }
});

test("reports a link to a nonexistent step or tour", () => {
  const tour = { steps: tours[0]!.steps.slice(0, 3) };
  for (const step of ["0", "4", "-1", "two", "1e1", ""])
    expect(linkProblem({ tour: "x", step }, tour)).toBe(`Step “${step}” does not exist: this tour has steps 1 to 3.`);
  for (const step of ["1", "3"]) expect(linkProblem({ tour: "x", step }, tour)).toBe("");
  expect(linkProblem({ tour: "none", step: "9" }, undefined)).toBe("No tour is called “none”. Choose one of these.");
  expect(linkProblem({}, undefined)).toBe("");
});
