import { describe, expect, it } from "vitest";
import type { Experiment } from "./experiment.ts";
import { explore } from "./explore.ts";
import { simulate } from "./simulate.ts";
import { flagOf, words } from "./words.ts";

describe("an experiment", () => {
  const experiment: Experiment = { protocol: "bully", nodes: 3, timers: "quiet", failureDetector: "last", crashes: 1 };

  it("is simulated and explored: one value for both", () => {
    expect(simulate({ ...experiment, crash: [2] })).toMatchObject({ outcome: { leader: { 0: 1, 1: 1 } } });
    expect(explore(experiment)).toMatchObject({ verdict: "holds" });
    expect(explore({ ...experiment, timers: "free" })).toMatchObject({
      verdict: "violated",
      property: { name: "E1 safety" },
    });
  });

  it("is stopped when told to", () => {
    expect(explore({ ...experiment, nodes: 4 }, () => false)).toMatchObject({ verdict: "unknown", ended: "stopped" });
  });

  it("has words that are read from text, and errors that name them", () => {
    expect([flagOf("maxStates"), words.maxStates.read("7", "--max-states")]).toEqual(["--max-states", 7]);
    expect(words.failureDetector.read("last", "--failure-detector")).toBe("last");
    expect(() => words.begin.read("up", "--begin")).toThrow('expected --begin to be idle, down or together, got "up"');
    expect(() => words.timers.read("synchronous", "--timers")).toThrow("what was called synchronous is called quiet");
  });
});
