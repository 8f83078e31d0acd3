import { describe, expect, it } from "vitest";
import { exploreUses, use } from "../../../../test/protocols/mutex-stage.ts";
import { range } from "../../../../test/protocols/sizes.ts";
import { simulation } from "../../../sim/simulation.ts";
import { type MutexWithWorkload, mutexWithWorkload } from "../family/workload.ts";
import { ricartAgrawala } from "./ricart-agrawala.ts";
import { type RoucairolCarvalho, roucairolCarvalho } from "./roucairol-carvalho.ts";

describe("roucairol-carvalho", () => {
  it.each([2, 5, 16])("N = %i: who enters again and again asks once", (nodes) => {
    let entered = 0;
    const sim = simulation<MutexWithWorkload<RoucairolCarvalho>>({
      protocol: mutexWithWorkload(roucairolCarvalho),
      nodes: range(1, nodes),
      seed: 1,
      delayMs: 10,
      trace: (entry) => (entered += entry.kind === "event" && entry.event.body.type === "entered" ? 1 : 0),
    });
    for (const node of range(1, nodes)) sim.wake(node);
    sim.command(1, use(10));
    sim.run();
    expect(entered).toBe(10);
    expect(sim.messages.byType).toEqual({ request: nodes - 1, reply: nodes - 1 });
  });

  it("explored: ME1 and ME2 hold for 3 nodes, of which one enters twice, and the tokens grow", () => {
    expect(exploreUses(roucairolCarvalho(), 3, [2, 1, 1])).toMatchObject({ verdict: "holds" });
  });

  it("explored: without asking again, two nodes are inside", () => {
    const { verdict, property, path } = exploreUses(roucairolCarvalho({ asksAgain: false }), 3, [2, 1, 1]);
    expect([verdict, property?.name]).toEqual(["violated", "ME1 safety"]);
    const sections = path.at(-1)?.states.map((state) => state?.mutex.section.is);
    expect(sections?.filter((section) => section === "held")).toHaveLength(2);
  });

  it("explored: ME3 is given up: who keeps permissions enters before an earlier request", () => {
    const withOrder = { ...roucairolCarvalho(), properties: ricartAgrawala().properties as never };
    const { verdict, property } = exploreUses(withOrder, 3, [2, 1, 1]);
    expect([verdict, property?.name]).toEqual(["violated", "ME3 ordering"]);
  });
});
