import { describe, expect, it } from "vitest";
import { protocolNamed, protocolNames } from "../protocols/index.ts";
import { requestFrom } from "./check-request.ts";

describe("the options of `coterie check`", () => {
  it.each(protocolNames)("are all optional for %s", (protocol) => {
    const { spec, strategy } = requestFrom({ protocol });
    const { variant = null } = protocolNamed(protocol).check;
    expect(strategy).toBe("bfs");
    expect(spec).toMatchObject({ protocol, nodes: [0, 1, 2], variant, property: null });
  });

  it("select no initiators if starting is enough work, otherwise the family's initiators or the named nodes", () => {
    expect(requestFrom({ protocol: "bully" }).spec.initiators).toEqual([]);
    expect(requestFrom({ protocol: "bully", begin: "idle" }).spec.initiators).toEqual([0]);
    expect(requestFrom({ protocol: "bully", call: [1, 2] }).spec.initiators).toEqual([1, 2]);
    expect(requestFrom({ protocol: "paxos" }).spec.initiators).toEqual([0]);
    expect(requestFrom({ protocol: "paxos", propose: "all" }).spec.initiators).toEqual([0, 1, 2]);
    expect(requestFrom({ protocol: "ricart-agrawala", entries: 2 }).spec).toMatchObject({
      initiators: [0, 1, 2],
      times: 2,
    });
  });

  it("take the node ids and their order from --ring", () => {
    const { spec } = requestFrom({ protocol: "chang-roberts", ring: [7, 1, 5], call: [5] });
    expect(spec).toMatchObject({ nodes: [1, 5, 7], options: { ring: [7, 1, 5] }, initiators: [5] });
    expect(() => requestFrom({ protocol: "chang-roberts", ring: [7, 1, 5], call: [0] })).toThrow(
      "expected --call to be nodes among 1, 5, 7, got 0",
    );
  });

  it("pass faults and bounds to the checker", () => {
    const words = {
      crashes: 1,
      losses: 2,
      timers: "quiet",
      network: "bag",
      journal: "lost",
      withinStep: true,
      maxDepth: 9,
    } as const;
    expect(requestFrom({ protocol: "bully", ...words, failureDetector: "last" }).spec).toMatchObject({
      ...words,
      crashNotifications: "last",
    });
    expect(requestFrom({ protocol: "bully", maxMemory: 2 }).maxMemoryBytes).toBe(2 * 1024 * 1024);
    expect(requestFrom({ protocol: "bully", strategy: "swarm", seed: 5, runs: 6, steps: 7 })).toMatchObject({
      strategy: "swarm",
      seed: 5,
      runs: 6,
      steps: 7,
    });
    expect(requestFrom({ protocol: "bully", variant: "monitored" }).spec.variant).toBe("monitored");
  });

  it("use threads only for random runs, and at most one thread per run", () => {
    expect(requestFrom({ protocol: "bully" }).workers).toBe(1);
    expect(requestFrom({ protocol: "bully", strategy: "pct" }).workers).toBeLessThanOrEqual(8);
    expect(requestFrom({ protocol: "bully", strategy: "pct", runs: 1 }).workers).toBe(1);
    expect(requestFrom({ protocol: "bully", strategy: "pct", workers: 3 }).workers).toBe(3);
  });

  it("are refused if the strategy would ignore them", () => {
    expect(() => requestFrom({ protocol: "bully", withinStep: true })).toThrow(
      "expected --crashes with --within-step, such as --crashes 1",
    );
    expect(() => requestFrom({ protocol: "bully", runs: 3 })).toThrow(
      "expected --strategy random, pct or swarm with --runs",
    );
    expect(() => requestFrom({ protocol: "bully", strategy: "random", maxStates: 3 })).toThrow(
      "expected --strategy bfs or dfs with --max-states",
    );
    expect(() => requestFrom({ protocol: "bully", strategy: "dfs", workers: 2 })).toThrow(
      "expected --strategy random, pct or swarm with --workers, since dfs runs on one thread",
    );
    expect(() => requestFrom({ protocol: "bully", fewestFaults: true, crashes: 1, strategy: "dfs" })).toThrow(
      "bfs with --fewest-faults",
    );
    for (const protocol of protocolNames) {
      const { verb } = protocolNamed(protocol).family;
      for (const word of (["call", "request", "send", "propose"] as const).filter((other) => other !== verb))
        expect(() => requestFrom({ protocol, [word]: "all" })).toThrow(`expected --${word} to be absent`);
    }
  });
});
