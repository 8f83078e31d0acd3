import { describe, expect, it } from "vitest";
import { use } from "../../../../test/protocols/multicast-stage.ts";
import { explore } from "../../../check/explore.ts";
import { type SystemSpec, systemFor } from "../../../check/suite.ts";
import type { Property, Protocol, Vocabulary } from "../../../core/protocol.ts";
import { simulation } from "../../../sim/simulation.ts";
import { contexts } from "../../contexts.ts";
import { type ViewSynchrony, type ViewSynchronyOptions, viewSynchrony } from "../view-synchrony.ts";
import { type SettledViewSynchrony, settledViewSynchrony } from "./settled-view-synchrony.ts";

/** At the end of a view it delivers nothing of what it has received since it fell silent. */
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
  seen("somebody is suspected", ({ multicast }) => multicast.views.suspected.length > 0),
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
    "check: every run with one crash, %s, keeps it, and reaches suspicions and other views",
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

  it("check: a multicast that forgets what comes while the group changes breaks it", () => {
    const protocol = settledViewSynchrony({}, forgetful) as unknown as Protocol<Vocabulary>;
    const found = explore({ ...systemFor(crash), protocol, properties: protocol.properties });
    expect(found).toMatchObject({ verdict: "violated", property: { name: "workload: virtual synchrony" } });
  });

  it("sim: the same, where last words reach one of two", () => {
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

  it("sim: the same, where the first to go on crashes before the other does", () => {
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
    expect(verdict(viewSynchrony)).not.toContain("workload: virtual synchrony"); // Alone it waits for a majority for ever.
    expect(verdict(forgetful as typeof viewSynchrony)).toContain("workload: virtual synchrony");
  });
});
