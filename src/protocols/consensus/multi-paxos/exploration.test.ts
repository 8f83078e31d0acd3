import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { safeThenLive } from "../../../../test/protocols/log-adversity.ts";
import { agreed, proposal, walked } from "../../../../test/protocols/logs/explored.ts";
import { inTwoBallots } from "../../../../test/protocols/multi-paxos-models.ts";
import { expectStates, reaching } from "../../../../test/protocols/reached.ts";
import { type ExploreOptions, explore } from "../../../check/explore.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { type MultiPaxos, multiPaxos } from "./multi-paxos.ts";

/** Nodes 0 and 1 each propose a command, and become candidates to have it decided. */
const model = (more: Partial<ExploreOptions<MultiPaxos>> = {}): ExploreOptions<MultiPaxos> => ({
  protocol: multiPaxos({ window: 2, announces: false }),
  properties: [agreed([0, 1])],
  nodes: [0, 1, 2],
  network: "fifo",
  timers: "never",
  begin: "idle",
  asks: (node) => (node === 2 ? [] : [proposal(node)]),
  ...more,
});
const faults = { crashes: 1, recoveries: 1, losses: 1 } as const;

describe("multi-paxos: every run of two proposers", () => {
  it("keeps agreement, integrity and validity", () => {
    expectStates(reaching(explore(model()), "decided"), "holds", 22_789);
  });

  it("the same with the loss of any message", { tags: ["long"] }, () => {
    expectStates(reaching(explore(model({ losses: 1 })), "decided"), "holds", 128_670);
  });

  it("the same with a crash of any node at any time, and its recovery", { tags: ["long"] }, () => {
    const found = reaching(explore(model({ crashes: 1, recoveries: 1 })), "decided", "replay accepted");
    expectStates(found, "holds", 257_295);
  });

  /** Breadth-first search does not finish here within a minute. */
  const title = "the same with all of these together: no violation in %i states";
  it.each([100_000])(title, { tags: ["long"] }, isSafe);
  it.each([400_000])(title, { tags: ["larger"] }, isSafe);

  function isSafe(maxStates: number): void {
    const found = reaching(explore(model({ ...faults, maxStates })), "decided", "replay accepted");
    expect([found.verdict, found.property]).toEqual(["unknown", null]);
  }

  it("also in random, PCT and swarm runs, with timeouts", { tags: ["long"] }, () => {
    walked(model({ ...faults, timers: "free", maxTimeouts: 6 }), "led", "decided", "replay accepted", "receive learn");
  });
});

describe("multi-paxos: from states that a search reaches late", () => {
  it("a candidate takes over the value of the highest ballot that it finds", () => {
    const protocol = inTwoBallots(multiPaxos({ window: 2, announces: false }));
    const asks = (node: NodeId) => (node === 0 ? [proposal(0)] : []);
    const found = explore<MultiPaxos>({
      ...model({ protocol, asks }),
      properties: protocol.properties.filter(({ when }) => when === "always"),
      timers: "free",
      maxTimeouts: 2,
    });
    expect(reaching(found, "led", "decided").property?.name).toBeUndefined();
  });
});

// Multi-Paxos under random faults of the network and the nodes.

const log = {
  options: fc.record({
    window: fc.constantFrom(1, 2, 16),
    keep: fc.constantFrom(0, 2),
    announces: fc.boolean(),
    leaseMs: fc.constantFrom(150, 400),
  }),
  leasing: (drift: number) => ({ reads: "lease", drift }),
  make: (options: object) => multiPaxos(options) as never,
  durable: ({ promised, log, snapshot }: MultiPaxos["state"]) => structuredClone({ promised, log, snapshot }),
  decidedAt: ({ decided }: MultiPaxos["state"]) => decided,
};

describe("multi-paxos in adversity", () => {
  it("is safe, reads included, and elects a leader and decides proposals once faults cease", () =>
    safeThenLive(log, 40));

  it("the same, many runs", { tags: ["larger"] }, () => safeThenLive(log, 300));
});
