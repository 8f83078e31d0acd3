import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { channelStage, endure, synchronyOf } from "../../../../../test/protocols/channel-stage.ts";
import { type Fate, fate } from "../../../../../test/protocols/log-stage.ts";
import { range } from "../../../../../test/protocols/sizes.ts";
import type { Experiment } from "../../../../experiment/experiment.ts";
import { explore } from "../../../../experiment/explore.ts";
import type { Order } from "../../family/channels.ts";

const orders: readonly Order[] = ["none", "fifo", "causal", "total", "causal-total"];

describe.each(orders)("a channel in views on the log: %s", (order) => {
  it("all members are eventually in one view, and all deliver", () => {
    const stage = channelStage(3, order);
    for (const node of [0, 1, 2]) stage.start(node);
    stage.sim.run(1_500);
    expect(stage.viewsOf(0)).toMatchObject({ isChanging: false, view: { members: [0, 1, 2] } });
    for (const node of [0, 1, 2]) stage.send(node);
    stage.sim.run(1_700);
    for (const node of [0, 1, 2]) expect(stage.payloads(node)).toHaveLength(3);
    expect(synchronyOf(stage, order)).toEqual([]);
    expect(stage.sim.verdict()).toEqual([]);
  });

  const title =
    "virtual synchrony and the order hold under any faults, and all nodes are in one view once the faults end";
  function search(numRuns: number, nodes: number, acts: number) {
    const met = { ejected: 0, restored: 0, expired: 0, expelled: 0, views: 0 };
    const run = (given: Fate): void => {
      const stage = endure(given, order);
      const all = range(0, given.nodes - 1);
      expect(synchronyOf(stage, order)).toEqual([]);
      expect(stage.sim.verdict()).toEqual([]);
      for (const node of all) {
        expect(stage.viewsOf(node)).toMatchObject({ isChanging: false, view: { members: all } });
        expect(
          stage
            .payloads(node)
            .slice(-given.nodes)
            .map((name) => Number.parseInt(name, 10))
            .toSorted((a, b) => a - b),
        ).toEqual(all);
      }
      for (const what of Object.keys(met) as (keyof typeof met)[]) met[what] += stage.count[what];
    };
    fc.assert(fc.property(fate(nodes, acts), run), { numRuns, seed: 7 });
    for (const count of Object.values(met)) expect(count).toBeGreaterThan(0);
  }
  const tags = { total: [], fifo: ["long"], none: ["larger"], causal: ["larger"], "causal-total": ["larger"] } as const;
  it(title, { tags: [...tags[order]] }, () => search(3, 4, 40));
});

// Explores channels as `join()` runs them, with sessions, replicas, log and failure detector: every run of two members
// within bounds. The bounds cut runs off, so the verdict is never `holds`. The tests check that no run violates a
// property, and that members enter, install views and deliver.

const PROPERTIES = ["integrity", "virtual synchrony", "agreement on views", "no member stays blocked", "log matching"];
const REACHED = [
  "replica.grouped",
  "multicast.asked",
  "multicast.installed",
  "multicast.delivered",
  "multicast.stable",
];

function expectSound(protocol: string, order: string, bounds: Omit<Experiment, "protocol" | "variant">): void {
  const answer = explore({ protocol, variant: "channel-bounded", ...bounds });
  expect([answer.verdict, answer.property, answer.ended]).toEqual(["unknown", null, null]);
  const checked = answer.checked.map(({ name }) => name.replace(/^(\w+: )+/, ""));
  expect(checked).toEqual(expect.arrayContaining([...PROPERTIES, order]));
  expect(Object.keys(answer.reach.events)).toEqual(expect.arrayContaining(REACHED));
}

describe("channels in views on the log, every run within bounds", () => {
  it.each([
    ["view-synchrony", "C4 FIFO order"],
    ["fifo", "C4 FIFO order"],
    ["causal", "C5 happened-before order"],
    ["isis", "C6 total order"],
    ["causal-total", "C6 total order"],
  ])("%s: two members send, and one timer expires at any time: %s", (protocol, order) => {
    expectSound(protocol, order, { nodes: 2, maxTimeouts: 1 });
  });

  it("the same, and either member crashes at any time", () => {
    expectSound("view-synchrony", "C4 FIFO order", { nodes: 2, maxTimeouts: 1, crashes: 1 });
  });
});
