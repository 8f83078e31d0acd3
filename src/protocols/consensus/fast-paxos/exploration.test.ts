import { describe, expect, it } from "vitest";
import { agreed, proposal, walked } from "../../../../test/protocols/logs/explored.ts";
import { reaching } from "../../../../test/protocols/reached.ts";
import { type ExploreOptions, explore } from "../../../check/explore.ts";
import { type FastPaxos, type FastPaxosOptions, fastPaxos } from "./fast-paxos.ts";

/** One instance, in which nodes 1 and 2 propose; 0 coordinates. */
const model = (
  nodes: number,
  options: Partial<FastPaxosOptions>,
  more: Partial<ExploreOptions<FastPaxos>> = {},
): ExploreOptions<FastPaxos> => {
  const protocol = fastPaxos({ instances: 1, ...options });
  return {
    protocol,
    properties: [...protocol.properties, agreed([1, 2])],
    nodes: Array.from({ length: nodes }, (_, node) => node),
    network: "fifo",
    timers: "never",
    begin: "idle",
    asks: (node) => (node === 1 || node === 2 ? [proposal(node)] : []),
    ...more,
  };
};
const faults = { crashes: 1, recoveries: 1, losses: 1 } as const;

describe("fast paxos: every run of one instance and two proposers keeps agreement, integrity and validity", () => {
  it("three acceptors", () => {
    expect(reaching(explore(model(3, {})), "decided", "receive accept")).toMatchObject({
      verdict: "holds",
      states: 2_349,
    });
  });

  it("three acceptors, with a crash of any of them, a recovery and a loss", { tags: ["long"] }, () => {
    const found = reaching(explore(model(3, {}, faults)), "decided", "receive accept", "replay voted");
    expect(found).toMatchObject({ verdict: "holds", states: 103_319 });
  });

  it.each([
    ["coordinated", 471_602],
    ["uncoordinated", 205_845],
  ] as const)("four acceptors, %s", { tags: ["long"] }, (recovery, states) => {
    const found = reaching(explore(model(4, { recovery })), "decided", "receive accepted");
    expect([found.verdict, found.states]).toEqual(["holds", states]);
  });

  it("four acceptors, uncoordinated, with the loss of any message", { tags: ["long"] }, () => {
    const found = reaching(explore(model(4, { recovery: "uncoordinated" }, { losses: 1 })), "decided");
    expect(found).toMatchObject({ verdict: "holds", states: 1_430_966 });
  });

  /** Breadth-first search does not end here: 4,000,000 states were looked at once, to depth 11. */
  it("four acceptors, with a crash and a recovery: no violation in 300,000 states", { tags: ["long"] }, () => {
    const found = reaching(explore(model(4, {}, { crashes: 1, recoveries: 1, maxStates: 300_000 })), "decided");
    expect([found.verdict, found.property]).toEqual(["unknown", null]);
  });

  it.each(["coordinated", "uncoordinated"] as const)(
    "four acceptors, %s: nor in random, PCT and swarm runs with a crash, a recovery, a loss and time-outs",
    { tags: ["long"] },
    (recovery) => {
      const bounds = { ...faults, timers: "free", maxTimeouts: 6 } as const;
      walked(model(4, { recovery }, bounds), "decided", "led", "receive promise", "replay voted");
    },
  );
});
