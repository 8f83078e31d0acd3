import { describe, expect, test } from "vitest";
import type { Catalogue } from "./catalogue.ts";
import { placeOf } from "./engine/recipe.ts";
import { algorithmOf, presetOf, runProblem, withPreset, withProtocol } from "./link-defaults.ts";

const bare = { summary: "", family: "", topology: "", guarantees: [], costs: [] };
const catalogue: Catalogue = [
  { ...bare, name: "bully", scenarios: [{ file: "bully-a", title: "" }] },
  { ...bare, name: "raft", scenarios: [{ file: "raft-as-lectured", title: "", variant: "lecture" }] },
];

test("reports a link to an unknown protocol or scenario", () => {
  expect(runProblem({ protocol: "raft", scenario: "bully-a" }, catalogue)).toBe("");
  expect(runProblem({}, catalogue)).toBe("");
  expect(runProblem({ protocol: "rafts" }, catalogue)).toBe(
    "No protocol is called “rafts”. The gallery lists the protocols.",
  );
  expect(runProblem({ protocol: "raft", scenario: "bully-b" }, catalogue)).toBe(
    "No scenario is called “bully-b”. The gallery lists the scenarios.",
  );
});

describe("a link with only a scenario", () => {
  test("gets the protocol of the scenario", () => {
    expect(withProtocol({ scenario: "raft-as-lectured", at: "3" }, catalogue)).toEqual({
      scenario: "raft-as-lectured",
      at: "3",
      protocol: "raft",
    });
    expect(algorithmOf("raft-as-lectured", catalogue)).toEqual({ protocol: "raft", variant: "lecture" });
  });

  test("is unchanged if it names a protocol, or if the scenario is unknown", () => {
    for (const words of [
      { scenario: "bully-a", protocol: "ring" },
      { scenario: "nothing" },
      { recording: "a.jsonl" },
      {},
    ])
      expect(withProtocol(words, catalogue)).toBe(words);
  });
});

describe("a link without a run", () => {
  test.each(["#/run", "#/check", "#/compare", "#/embed"])(
    "shows the default run of %s at the cursor's step",
    (hash) => {
      const { page, words } = placeOf(hash);
      expect(withPreset(page, words)).toEqual(presetOf(page));
      expect(presetOf(page).protocol).toBe("bully");
      const reloaded = placeOf(`${hash}?at=4`);
      expect(withPreset(page, reloaded.words)).toEqual({ ...presetOf(page), at: "4" });
    },
  );

  test("keeps its other words", () => {
    expect(withPreset("run", { protocol: "", nodes: "4" })).toEqual({ protocol: "bully", nodes: "4" });
    expect(withPreset("compare", { with: "ring" })).toEqual({ protocol: "bully", with: "ring", nodes: "6" });
    expect(withPreset("tour", { lang: "es" })).toEqual({ lang: "es" });
  });

  test("is not a link with a protocol, a scenario, a recording or a counterexample", () => {
    for (const words of [
      { protocol: "ring" },
      { scenario: "nothing" },
      { recording: "a.jsonl" },
      { counterexample: "1" },
    ])
      expect(withPreset("run", words)).toBe(words);
  });
});
