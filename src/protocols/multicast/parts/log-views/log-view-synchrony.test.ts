import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { channelStage, endure, synchronyOf } from "../../../../../test/protocols/channel-stage.ts";
import { type Fate, fate } from "../../../../../test/protocols/log-stage.ts";
import { range } from "../../../../../test/protocols/sizes.ts";
import type { Order } from "../../family/channels.ts";

const orders: readonly Order[] = ["none", "fifo", "causal", "total", "causal-total"];

describe.each(orders)("a channel in views on the log: %s", (order) => {
  it("all members come to be in one view, and all deliver", () => {
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

  const title = "whatever happens, virtual synchrony and the order hold, and all are in one view once it has healed";
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
  if (order === "total") it(title, () => search(3, 4, 40));
  else it(title, { tags: ["long"] }, () => search(3, 4, 40));
});
