/** Expectations for tests of several multicasts. */
import fc from "fast-check";
import { expect } from "vitest";
import type { Protocol, Vocabulary } from "../../src/core/protocol.ts";
import type { MulticastWithWorkload } from "../../src/protocols/multicast/family/workload.ts";
import type { Simulation } from "../../src/sim/simulation.ts";
import { MESSAGE_MS, stage, use } from "./multicast-stage.ts";
import { range } from "./sizes.ts";

export interface Demands {
  /** Members send during this time. */
  readonly withinMs?: number;
  /** The largest number of messages sent at once. */
  readonly most?: number;
  readonly numRuns?: number;
}

/** Checks random sends by five members: eventually every member delivers all messages, and no property is violated. */
export function expectAllDelivered<M extends Vocabulary>(
  group: (seed: number) => Simulation<MulticastWithWorkload<M>>,
  { withinMs = 100, most = 3, numRuns = 150 }: Demands = {},
): void {
  const demand = fc.record({ node: fc.nat(4), at: fc.nat(withinMs), messages: fc.integer({ min: 1, max: most }) });
  fc.assert(
    fc.property(fc.nat(), fc.array(demand, { minLength: 1, maxLength: 8 }), (seed, demands) => {
      const sim = group(seed);
      for (const { node, at, messages } of demands.toSorted((a, b) => a.at - b.at)) {
        sim.run(at);
        sim.command(node, use(messages));
      }
      sim.run();
      expect(sim.verdict()).toEqual([]);
      const count = demands.reduce((sum, { messages }) => sum + messages, 0);
      for (const node of range(0, 4)) expect(sim.world.state(node).workload.delivered).toHaveLength(count);
    }),
    { numRuns },
  );
}

/**
 * Expects the cost of a multicast by the lowest and the highest node to be as measured here and as claimed by the
 * algorithm.
 */
export function expectCost<M extends Vocabulary>(protocol: Protocol<M>, nodes: number, messages: number): void {
  const group = stage(protocol, nodes);
  group.send(0, "hello");
  group.send(nodes - 1, "hello");
  group.sim.run();
  expect(group.sim.messages.total).toBe(2 * messages);
  expect(protocol.costs[0]?.messages(nodes)).toBe(messages);
  expect(group.sim.verdict()).toEqual([]);
}

/** Expects the members of a group to deliver a message from the first member after these numbers of message delays. */
export function expectDelays<M extends Vocabulary>(protocol: Protocol<M>, delays: readonly number[]): void {
  const group = stage(protocol, delays.length);
  group.send(0, "hello");
  group.sim.run();
  expect(group.times("hello")).toEqual(delays.map((each) => each * MESSAGE_MS));
}
