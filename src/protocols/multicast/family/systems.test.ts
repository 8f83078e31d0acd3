import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { adversity, befall, recover } from "../../../../test/protocols/group-adversity.ts";
import type { GroupStage } from "../../../../test/protocols/group-stage.ts";
import type { Protocol } from "../../../core/protocol.ts";
import { simulation } from "../../../sim/simulation.ts";
import { fifoOrder, happenedBeforeOrder, totalOrder } from "../family/properties.ts";
import { flushCausal, flushCausalTotal, flushFifo, flushFifoTotal, flushIsis } from "../parts/flush.ts";
import type { ViewSynchrony } from "../view-synchrony.ts";
import { viewSynchrony } from "../view-synchrony.ts";
import { monitoredMulticastModel } from "./systems.ts";

const range = (nodes: number): number[] => Array.from({ length: nodes }, (_, i) => i);

/** A group with workloads that see what is kept, told what to do as on other stages. */
function stage(protocol: ReturnType<typeof monitoredMulticastModel<ViewSynchrony>>, nodes: number, seed: number) {
  const sim = simulation({
    protocol,
    nodes: range(nodes),
    seed,
    delayMs: [1, 10],
    link: { order: "none" },
    properties: "at the end",
  });
  for (const node of range(nodes)) sim.start(node);
  return {
    sim,
    start: (node: number) => sim.start(node),
    send: (node: number) => sim.command(node, { type: "workload", body: { type: "send", messages: 1 } }),
    tell: (node: number, command: ViewSynchrony["command"]) => sim.command(node, { type: "multicast", body: command }),
  };
}

describe("workloads of a multicast with views: whatever happens", () => {
  it.each([
    ["none", viewSynchrony, [fifoOrder]],
    ["fifo", flushFifo, [fifoOrder]],
    ["causal", flushCausal, [fifoOrder, happenedBeforeOrder]],
    ["isis", flushIsis, [totalOrder]],
    ["fifo-total", flushFifoTotal, [fifoOrder, totalOrder]],
    ["causal-total", flushCausalTotal, [fifoOrder, happenedBeforeOrder, totalOrder]],
  ] as const)("%s: what is promised is kept", (_order, channel, orders) => {
    const model = monitoredMulticastModel(channel as unknown as () => Protocol<ViewSynchrony>, orders);
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 2, max: 5 }), adversity(5, 60), (seed, nodes, acts) => {
        const group = stage(model, nodes, seed);
        befall(group as unknown as GroupStage<ViewSynchrony>, range(nodes), acts);
        recover(group as unknown as GroupStage<ViewSynchrony>, range(nodes));
        expect(group.sim.verdict()).toEqual([]);
      }),
      { numRuns: 10 },
    );
  });
});
