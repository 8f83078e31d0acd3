import { describe, expect, it } from "vitest";
import { proposal, walked } from "../../../../test/protocols/logs/explored.ts";
import { reaching } from "../../../../test/protocols/reached.ts";
import { type ExploreOptions, explore } from "../../../check/explore.ts";
import type { EventOf, NodeId, Property } from "../../../core/protocol.ts";
import { type GeneralizedPaxos, generalizedPaxos } from "./generalized-paxos.ts";

const proposers = [1, 2];

const validity: Property<GeneralizedPaxos> = {
  name: "integrity and validity",
  claim: "nothing is learnt that was not proposed, and nothing twice in a life",
  when: "always",
  history: {
    empty: [] as readonly NodeId[],
    after(before: readonly NodeId[], event: EventOf<GeneralizedPaxos>): readonly NodeId[] {
      if (event.type !== "decided") return before;
      const { index, command } = event;
      return index === 1 ? [command.client] : [...before, command.client];
    },
  },
  holds: ({ nodes, history }) =>
    nodes.every((node) => {
      const learnt = history<readonly NodeId[]>(node);
      return new Set(learnt).size === learnt.length && learnt.every((client) => proposers.includes(client));
    }),
};

/** Nodes 1 and 2 propose commands that interfere; 0 coordinates. */
const model = (nodes: number, more: Partial<ExploreOptions<GeneralizedPaxos>> = {}) => {
  const protocol = generalizedPaxos({ interference: "by-key" });
  return {
    protocol,
    properties: [...protocol.properties, validity],
    nodes: Array.from({ length: nodes }, (_, node) => node),
    network: "fifo",
    timers: "never",
    begin: "idle",
    asks: (node: NodeId) => (proposers.includes(node) ? [proposal(node)] : []),
    ...more,
  } as const;
};
const faults = { crashes: 1, recoveries: 1, losses: 1 } as const;

describe("generalized paxos: every run of two proposers whose commands interfere, three acceptors", () => {
  it("keeps agreement, integrity and validity", () => {
    const found = reaching(explore(model(3)), "decided", "receive accept");
    expect(found).toMatchObject({ verdict: "holds", states: 30_907 });
  });

  it("the same with the loss of any message", { tags: ["long"] }, () => {
    const found = reaching(explore(model(3, { losses: 1 })), "decided", "receive accept");
    expect(found).toMatchObject({ verdict: "holds", states: 200_546 });
  });

  it("the same with a crash of any node at any time, and its recovery", { tags: ["long"] }, () => {
    const found = reaching(explore(model(3, { crashes: 1, recoveries: 1 })), "decided", "replay voted");
    expect(found).toMatchObject({ verdict: "holds", states: 352_766 });
  });

  /** Breadth-first search does not end here, nor with four acceptors: 1,489,524 states in 25 seconds without any fault, to depth 15. */
  it.each([
    [3, faults],
    [4, {}],
  ] as const)("%i acceptors, %j: no violation in 700,000 states", { tags: ["long"] }, (nodes, struck) => {
    const found = explore(model(nodes, { ...struck, maxStates: 700_000 }));
    expect([found.verdict, found.property]).toEqual(["unknown", null]);
  });

  it.each([3, 4])(
    "%i acceptors: nor in random, PCT and swarm runs with a crash, a recovery, a loss and time-outs",
    {
      tags: ["long"],
    },
    (nodes) => {
      const bounds = { ...faults, timers: "free", maxTimeouts: 6 } as const;
      walked(model(nodes, bounds), "decided", "led", "receive promise", "receive accept", "replay voted");
    },
  );
});
