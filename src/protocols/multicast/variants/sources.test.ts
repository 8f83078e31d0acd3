/** What a lecture says of basic and of reliable multicast, and what happens. */
import { describe, expect, it } from "vitest";
import { send, stage } from "../../../../test/protocols/multicast-stage.ts";
import { range } from "../../../../test/protocols/sizes.ts";
import { explore } from "../../../check/explore.ts";
import { systemFor } from "../../../check/suite.ts";
import { ipMulticast } from "../ip-multicast/ip-multicast.ts";

const [P, Q] = [0, 1];

describe("basic multicast, “at least once”", () => {
  const lossy = { protocol: "basic-multicast", nodes: [P, Q], initiators: [P], timers: "quiet" } as const;

  it("without acknowledgements a loss is never made good, and nothing doubles", () => {
    const found = explore(systemFor({ ...lossy, losses: 1 }));
    expect(found).toMatchObject({ verdict: "violated", property: { name: "workload: agreement" } });
    const integrity = systemFor({ ...lossy, losses: 1, property: "workload: integrity" });
    expect(explore(integrity).verdict).toBe("holds");
  });

  it("sent again until it is acknowledged: a lost acknowledgement has the message delivered twice", () => {
    const found = explore(systemFor({ ...lossy, variant: "at-least-once", losses: 1 }));
    expect(found).toMatchObject({ verdict: "violated", property: { name: "workload: integrity" } });
    expect(found.path.map(({ move: { node, kind } }) => `${node} ${kind}`)).toEqual([
      "0 command",
      "1 receive",
      "0 lose",
      "0 timeout",
      "1 receive",
    ]);
  });

  it("where a copy is known, once: every run with two losses and a copy", () => {
    const system = systemFor({ ...lossy, variant: "acknowledged", losses: 2, duplications: 1 });
    expect(explore(system).verdict).toBe("holds");
  });
});

describe("reliable multicast over IP multicast: a number that is not the next (the lecture's second case)", () => {
  /** Q misses the first of two messages of P. */
  function afterAGap(inOrder: boolean) {
    const group = stage(ipMulticast({ inOrder }), 2);
    group.sim.cut(P, Q);
    group.sim.command(P, send("first"));
    group.sim.mend(P, Q);
    group.sim.command(P, send("second"));
    group.sim.run(11);
    const soon = group.at(Q);
    group.sim.run();
    expect(group.sim.verdict()).toEqual([]);
    return { soon, atLast: group.at(Q) };
  }

  it("held back until the gap is filled: FIFO", () => {
    expect(afterAGap(true)).toEqual({ soon: [], atLast: ["first", "second"] });
  });

  it("delivered at once despite the gap: once and everywhere, and not FIFO", () => {
    expect(afterAGap(false)).toEqual({ soon: ["second"], atLast: ["second", "first"] });
  });

  it("every run with a loss: what each form promises holds, and at once FIFO does not", () => {
    const lossy = {
      protocol: "ip-multicast",
      nodes: [P, Q],
      initiators: [P],
      times: 2,
      losses: 1,
      network: "bag",
    } as const;
    const spec = { ...lossy, timers: "quiet" } as const;
    const verdictOf = (variant: string, property: string) =>
      explore(systemFor({ ...spec, variant, property: `workload: ${property}` })).verdict;
    for (const property of ["integrity", "validity", "agreement"])
      expect([verdictOf("even", property), verdictOf("at-once", property)]).toEqual(["holds", "holds"]);
    expect([verdictOf("even", "C4 FIFO order"), verdictOf("at-once", "C4 FIFO order")]).toEqual(["holds", "violated"]);
  });

  it("views need the order", () => {
    expect(() => ipMulticast({ begin: "outside", inOrder: false })).toThrow("expected ip-multicast.inOrder to be true");
  });

  it("among three a message that comes late is delivered where it comes", () => {
    const group = stage(ipMulticast({ inOrder: false }), 3);
    for (const payload of ["a", "b", "c"]) group.sim.command(P, send(payload));
    group.sim.run();
    for (const node of range(0, 2)) expect(group.at(node)).toEqual(["a", "b", "c"]);
  });
});
