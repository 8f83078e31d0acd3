import { describe, expect, it } from "vitest";
import { type Experiment, experimentOptions } from "./experiment.ts";
import { explore } from "./explore.ts";
import { simulate } from "./simulate.ts";
import { flagOf } from "./written-values.ts";

describe("an experiment", () => {
  const system: Experiment = { protocol: "bully", nodes: 3 };
  const experiment: Experiment = { ...system, timers: "quiet", failureDetector: "last", crashes: 1 };

  it("can be both simulated and explored", () => {
    expect(simulate({ ...system, crash: [2] })).toMatchObject({ outcome: { leader: { 0: 1, 1: 1 } } });
    expect(explore(experiment)).toMatchObject({ verdict: "holds" });
    expect(explore({ ...experiment, timers: "free" })).toMatchObject({
      verdict: "violated",
      property: { name: "E1 safety" },
    });
  });

  it("is refused if it has options of the other use", () => {
    expect(() => simulate(experiment)).toThrow(
      "expected --timers to be absent: it applies to explorations, not to simulated runs",
    );
    expect(() => explore({ ...system, crash: [2] })).toThrow(
      "expected --crash to be absent: it applies to simulated runs, not to explorations",
    );
    expect(() => explore({ ...system, loss: 0.5 })).toThrow("expected --loss to be absent");
    expect(simulate({ ...system, timers: undefined as never, seed: 3 })).toMatchObject({ outcome: {} });
  });

  it("stops when mayGoOn returns false", () => {
    expect(explore({ ...experiment, nodes: 4 }, () => false)).toMatchObject({ verdict: "unknown", ended: "stopped" });
  });

  it("can have Byzantine nodes and a commander's order in simulations and explorations", () => {
    const generals: Experiment = { protocol: "byzantine-generals", nodes: 4, order: "wait" };
    expect(simulate({ ...generals, byzantine: { 3: "mute" } })).toMatchObject({ outcome: { decided: { 1: "wait" } } });
    expect(explore({ ...generals, nodes: 3, options: { m: 1 }, traitors: { 2: "mute" } })).toMatchObject({
      verdict: "violated",
      property: { name: "IC2 validity" },
    });
    expect(experimentOptions.byzantine.read("2, 4=mute", "--byzantine")).toEqual({ 2: "adversary", 4: "mute" });
    expect(experimentOptions.byzantine.read("1=equivocate,3=mute", "--byzantine")).toEqual({
      1: "equivocate",
      3: "mute",
    });
    expect(() => experimentOptions.byzantine.read("2=shy", "--byzantine")).toThrow(
      "expected --byzantine to be node ids",
    );
    expect(experimentOptions.traitors.read("0,2", "--traitors")).toEqual({ 0: "adversary", 2: "adversary" });
  });

  it("parses options from text and names them in errors", () => {
    expect([flagOf("maxStates"), experimentOptions.maxStates.read("7", "--max-states")]).toEqual(["--max-states", 7]);
    expect(experimentOptions.failureDetector.read("last", "--failure-detector")).toBe("last");
    expect(() => experimentOptions.begin.read("up", "--begin")).toThrow(
      'expected --begin to be idle, down or together, got "up"',
    );
  });
});
