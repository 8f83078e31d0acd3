import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Group,
  join,
  leave,
  range,
  say,
  stage,
  suspect,
  undetected,
  viewsOf,
} from "../../../../test/protocols/views-stage.ts";
import type { Simulation } from "../../../sim/simulation.ts";
import { views } from "./agreement.ts";

describe("views: what a change costs", () => {
  const kinds = ["prepare", "promise", "propose", "accept", "decided", "fill", "filled", "refuse", "wish"];

  /** So many messages of views as are sent from now on until all is quiet. */
  function costOf(sim: Simulation<Group>, change: () => void): number {
    const count = (): number => kinds.reduce((sum, kind) => sum + (sim.messages.byType[kind] ?? 0), 0);
    const before = count();
    change();
    sim.run(sim.now + 3_000);
    return count() - before;
  }

  it.each([3, 4, 5, 6, 7, 8, 16, 32, 64])("N = %i", (nodes) => {
    const [cost] = views().costs;
    const all = cost?.messages(nodes) as number;
    expect(all).toBe(5 * (nodes - 1));
    const sim = undetected(nodes);
    const last = nodes - 1;
    // Whoever leaves or comes says so to everybody first.
    expect(costOf(sim, () => sim.command(last, leave))).toBe(all + nodes - 1);
    expect(costOf(sim, () => sim.command(last, join))).toBe(all + nodes - 1);
    // The crashed one answers neither what is prepared nor what is proposed.
    const crash = (): void => {
      sim.crash(last);
      for (const node of range(last)) sim.command(node, suspect(last));
    };
    expect(costOf(sim, crash)).toBe(all - 2);
    expect(sim.world.state(0).views.view.members).toHaveLength(last);
    expect(sim.verdict().map(({ property }) => property)).toEqual(["detector: strong completeness"]);
  });

  it("two more for each member that lacks messages", () => {
    const sim = stage(5, { remindMs: 0 });
    sim.run(1_000);
    const lastWords = (): void => {
      for (const deaf of [1, 2]) sim.cut(4, deaf);
      sim.command(4, say);
      sim.crash(4);
    };
    expect(costOf(sim, lastWords)).toBe(5 * 4 - 2 + 2 * 2);
    expect(viewsOf(sim)).toEqual(["2: 0.1 1.1 2.1 3.1"]);
  });
});

describe("views: what they promise", () => {
  it("agreement, nobody unasked, the cut: whatever crashes, restarts and is cut off; in the end all are in one view", {
    tags: ["long"],
  }, () => {
    const act = fc.record({
      afterMs: fc.oneof(fc.nat(30), fc.nat(1_000)),
      node: fc.nat(4),
      other: fc.nat(4),
      what: fc.constantFrom("say", "say", "crash", "start", "start", "cut", "mend", "heal", "join", "leave"),
    });
    fc.assert(
      fc.property(fc.nat(), fc.array(act, { maxLength: 60, size: "max" }), (seed, acts) => {
        const sim = stage(5, {}, seed);
        for (const { afterMs, node, other, what } of acts) {
          sim.run(sim.now + afterMs);
          const isUp = sim.world.alive.includes(node);
          if (what === "cut" && node !== other) sim.cut(node, other);
          else if (what === "mend" && node !== other) sim.mend(node, other);
          else if (what === "heal") sim.heal();
          else if (what === "start" && !isUp) sim.start(node);
          else if (!isUp) continue;
          else if (what === "crash") sim.crash(node);
          else if (what === "say") sim.command(node, say);
          else if (what === "join" || what === "leave") sim.command(node, { type: "views", body: { type: what } });
        }
        sim.heal();
        for (const node of range(5)) {
          if (!sim.world.alive.includes(node)) sim.start(node);
          sim.command(node, join);
        }
        sim.run(sim.now + 15_000);
        expect(sim.verdict()).toEqual([]);
      }),
      { numRuns: 40 },
    );
  });
});
