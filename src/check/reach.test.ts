import { describe, expect, it } from "vitest";
import { explore } from "./explore.ts";
import { isReached } from "./reach.ts";
import { exploreDepthFirst } from "./search/dfs.ts";
import { walk } from "./search/walks.ts";
import { systemFor } from "./suite.ts";

const ring = systemFor({ protocol: "chang-roberts", nodes: [0, 1, 2], initiators: [0] });
const server = systemFor({ protocol: "elected-server", nodes: [0, 1, 2], initiators: [0], maxTimeouts: 2 });

describe("the reach of a search", () => {
  it("consists of events and handlers by name, and the handlers that never ran", () => {
    const { reach } = explore(ring);
    expect(Object.keys(reach.events)).toEqual(["elected"]);
    expect(reach.handlers).toMatchObject({ "command call": 1, "receive election": 5, "receive elected": 3 });
    expect(reach.never).toContain("command suspect");
    expect(isReached(reach, "elected")).toBe(true);
  });

  it("is the same breadth first, depth first and eventually at random", () => {
    const { reach } = explore(ring);
    expect(exploreDepthFirst(ring).reach).toEqual(reach);
    const { reach: walked } = walk({ ...ring, strategy: "random", seed: 1, runs: 50 });
    expect([Object.keys(walked.events), walked.never]).toEqual([Object.keys(reach.events), reach.never]);
  });

  it("excludes states that a bound cut off: no grant in the first states of an elected server", () => {
    const { verdict, reach } = explore({ ...server, maxStates: 5_000 });
    expect([verdict, isReached(reach, "needed"), isReached(reach, "entered")]).toEqual(["unknown", true, false]);
    const further = explore({ ...server, timers: "never" });
    expect(isReached(further.reach, "entered")).toBe(true);
  });

  it("prefixes events and handlers of a part with its name", () => {
    const { reach } = explore({ ...server, timers: "never" });
    expect(Object.keys(reach.events)).toContain("mutex.entered");
    expect(Object.keys(reach.handlers)).toEqual(
      expect.arrayContaining(["command workload.use", "receive mutex.grant"]),
    );
  });
});
