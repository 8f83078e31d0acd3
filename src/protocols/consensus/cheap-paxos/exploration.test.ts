import { describe, expect, it } from "vitest";
import { agreed, proposal, walked } from "../../../../test/protocols/logs/explored.ts";
import { reaching } from "../../../../test/protocols/reached.ts";
import { type ExploreOptions, explore } from "../../../check/explore.ts";
import { type CheapPaxos, cheapPaxos } from "./cheap-paxos.ts";

/** Both main nodes propose; 2 is the auxiliary. */
const model = (more: Partial<ExploreOptions<CheapPaxos>> = {}): ExploreOptions<CheapPaxos> => ({
  protocol: cheapPaxos({ window: 2, announces: false }),
  properties: [agreed([0, 1])],
  nodes: [0, 1, 2],
  network: "fifo",
  timers: "never",
  begin: "idle",
  asks: (node) => (node === 2 ? [] : [proposal(node)]),
  ...more,
});
const faults = { crashes: 1, recoveries: 1, losses: 1 } as const;

describe("cheap-paxos: every run of two proposers", () => {
  it("keeps agreement, integrity and validity, with a crash, a recovery and a loss as well", () => {
    expect(reaching(explore(model()), "decided")).toMatchObject({ verdict: "holds", states: 68 });
    const found = reaching(explore(model(faults)), "decided", "replay accepted");
    expect(found).toMatchObject({ verdict: "holds", states: 1_584 });
  });

  /** Auxiliaries are asked once a main node has been silent. What runs with a third time-out do is cut off. */
  it("the same with two time-outs while nothing is on its way: members change, and auxiliaries help", {
    tags: ["long"],
  }, () => {
    const found = explore(model({ ...faults, timers: "quiet", maxTimeouts: 2 }));
    expect([found.verdict, found.property, found.states]).toEqual(["unknown", null, 353_446]);
    reaching(found, "decided", "reconfigured", "halted", "replay accepted");
  });

  it("the same in random, PCT and swarm runs, with time-outs at any time", { tags: ["long"] }, () => {
    walked(model({ ...faults, timers: "free", maxTimeouts: 8 }), "led", "decided", "reconfigured", "replay accepted");
  });
});
