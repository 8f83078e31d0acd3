/** Compares claims from a lecture about basic and reliable multicast with their actual behavior. */
import { describe, expect, it } from "vitest";
import { send, stage, use } from "../../../../test/protocols/multicast-stage.ts";
import { range } from "../../../../test/protocols/sizes.ts";
import { explore } from "../../../check/explore.ts";
import { type SystemSpec, systemFor } from "../../../check/suite.ts";
import type { Property, Protocol, Vocabulary } from "../../../core/protocol.ts";
import { simulation } from "../../../sim/simulation.ts";
import { contexts } from "../../contexts.ts";
import { ipMulticast } from "../ip-multicast/ip-multicast.ts";
import { type ViewSynchrony, type ViewSynchronyOptions, viewSynchrony } from "../view-synchrony.ts";
import { type SettledViewSynchrony, settledViewSynchrony } from "./settled-view-synchrony.ts";

const [P, Q] = [0, 1];

describe("basic multicast, “at least once”", () => {
  const lossy = { protocol: "basic-multicast", nodes: [P, Q], initiators: [P], timers: "quiet" } as const;

  it("without acknowledgements a loss is never repaired, and nothing is duplicated", () => {
    const found = explore(systemFor({ ...lossy, losses: 1 }));
    expect(found).toMatchObject({ verdict: "violated", property: { name: "workload: agreement" } });
    const integrity = systemFor({ ...lossy, losses: 1, property: "workload: integrity" });
    expect(explore(integrity).verdict).toBe("holds");
  });

  it("sent again until acknowledged: a lost acknowledgement makes the message delivered twice", () => {
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

  it("with duplicate detection, once: every run with two losses and a duplicate", () => {
    const system = systemFor({ ...lossy, variant: "acknowledged", losses: 2, duplications: 1 });
    expect(explore(system).verdict).toBe("holds");
  });
});

describe("reliable multicast over IP multicast: a number that is not the next (the lecture's second case)", () => {
  /** Makes Q miss the first of two messages from P. */
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

  it("delivered at once despite the gap: once and everywhere, but not FIFO", () => {
    expect(afterAGap(false)).toEqual({ soon: ["second"], atLast: ["second", "first"] });
  });

  it("every run with a loss: the guarantees of each form hold, and delivery at once violates FIFO", () => {
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

  it("among three nodes a late message is delivered where it arrives", () => {
    const group = stage(ipMulticast({ inOrder: false }), 3);
    for (const payload of ["a", "b", "c"]) group.sim.command(P, send(payload));
    group.sim.run();
    for (const node of range(0, 2)) expect(group.at(node)).toEqual(["a", "b", "c"]);
  });
});

/** A faulty protocol: at the end of a view, a node does not deliver messages that it received after it blocked. */
function forgetful(options: ViewSynchronyOptions): Protocol<ViewSynchrony> {
  const sound = viewSynchrony(options);
  const mute = contexts((ctx) => ({
    emit(event) {
      if (event.type !== "delivered") ctx.emit(event);
    },
  }));
  return {
    ...sound,
    receive: {
      ...sound.receive,
      views: (state, from, message, ctx) => sound.receive.views(state, from, message, mute(ctx as never)),
    },
  };
}

const seen = (what: string, holds: (state: SettledViewSynchrony["state"]) => boolean): Property<Vocabulary> => ({
  name: what,
  claim: what,
  when: "sometimes",
  holds: ({ alive, state }) => alive.some((node) => holds(state(node) as SettledViewSynchrony["state"])),
});

const reached = [
  seen("a node is suspected", ({ multicast }) => multicast.views.suspected.length > 0),
  seen("a view follows", ({ workload }) => workload.since === 1 && workload.view > 1),
];

const crash: SystemSpec = {
  protocol: "view-synchrony",
  variant: "settled",
  nodes: [0, 1, 2],
  initiators: [0],
  crashes: 1,
  crashNotifications: "any",
  timers: "quiet",
};

describe("virtual synchrony as a property", () => {
  it.each([
    ["one sends", [0], 696],
    ["two send", [0, 1], 14_109],
  ])(
    "check: every run with one crash, %s, satisfies it, and reaches suspicions and other views",
    { tags: ["long"] },
    (_who, initiators, states) => {
      const system = systemFor({ ...crash, initiators });
      const properties = [...(system.properties ?? []), ...reached];
      expect(properties.map(({ name }) => name)).toContain("workload: virtual synchrony");
      const found = explore({ ...system, properties });
      expect(found).toMatchObject({ verdict: "holds", states });
      expect(found.witnesses).toHaveLength(reached.length);
    },
  );

  it("check: a multicast that forgets messages received while the group changes violates it", () => {
    const protocol = settledViewSynchrony({}, forgetful) as unknown as Protocol<Vocabulary>;
    const found = explore({ ...systemFor(crash), protocol, properties: protocol.properties });
    expect(found).toMatchObject({ verdict: "violated", property: { name: "workload: virtual synchrony" } });
  });

  it("sim: the same, if the last messages reach one of two nodes", () => {
    const verdict = (made: typeof viewSynchrony) => {
      const sim = simulation({ protocol: settledViewSynchrony({}, made), nodes: [0, 1, 2], seed: 1, delayMs: 10 });
      for (const node of [0, 1, 2]) sim.wake(node);
      sim.cut(0, 2);
      sim.command(0, use(1));
      sim.run(11);
      sim.crash(0);
      for (const node of [1, 2]) sim.command(node, { type: "multicast", body: { type: "suspect", node: 0 } });
      sim.run(5_000);
      expect(sim.world.alive.map((node) => sim.world.state(node).workload.view)).toEqual([2, 2]);
      return sim.verdict().map(({ property }) => property);
    };
    expect(verdict(viewSynchrony)).toEqual([]);
    expect(verdict(forgetful as typeof viewSynchrony)).toContain("workload: virtual synchrony");
  });

  it("sim: the same, if the first node to continue crashes before the other does", () => {
    const verdict = (made: typeof viewSynchrony) => {
      const sim = simulation({ protocol: settledViewSynchrony({}, made), nodes: [0, 1, 2], seed: 1, delayMs: 10 });
      for (const node of [0, 1, 2]) sim.wake(node);
      sim.cut(0, 2);
      sim.command(0, use(1));
      sim.run(11);
      sim.crash(0);
      for (const node of [1, 2]) sim.command(node, { type: "multicast", body: { type: "suspect", node: 0 } });
      const ahead = () => [1, 2].find((node) => sim.world.state(node).workload.view === 2);
      while (ahead() === undefined) sim.step();
      const [first, second] = ahead() === 1 ? [1, 2] : [2, 1];
      expect(sim.world.state(second).workload.view).toBe(1);
      sim.crash(first);
      sim.command(second, { type: "multicast", body: { type: "suspect", node: first } });
      sim.run(5_000);
      expect(sim.world.state(second).workload).toMatchObject({ since: 1, view: 2 });
      return sim.verdict().map(({ property }) => property);
    };
    // A node that is alone waits forever for a majority.
    expect(verdict(viewSynchrony)).not.toContain("workload: virtual synchrony");
    expect(verdict(forgetful as typeof viewSynchrony)).toContain("workload: virtual synchrony");
  });
});
