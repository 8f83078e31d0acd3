import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Group,
  join,
  leave,
  range,
  restore,
  said,
  say,
  stage,
  story,
  suspect,
  undetected,
  viewOf,
  viewsOf,
} from "../../../../test/protocols/views-stage.ts";
import type { NodeId } from "../../../core/protocol.ts";
import type { Simulation } from "../../../sim/simulation.ts";
import { type ViewsOptions, views } from "./agreement.ts";

describe("views", () => {
  it("all nodes that start are in the first view together", () => {
    const sim = stage(5);
    sim.run(1_000);
    expect(viewsOf(sim)).toEqual(["1: 0.1 1.1 2.1 3.1 4.1"]);
    expect(sim.verdict()).toEqual([]);
  });

  it("a majority is enough for the first view, and nodes that start later together join together", () => {
    const sim = stage(5, {}, 1, [0, 1, 2]);
    sim.run(2_000);
    expect(viewsOf(sim)).toEqual(["1: 0.1 1.1 2.1"]);
    for (const node of [4, 3]) sim.start(node);
    sim.run(4_000);
    expect(viewsOf(sim)).toEqual(["2: 0.1 1.1 2.1 3.1 4.1"]);
    expect(sim.verdict()).toEqual([]);
  });

  it("less than a majority installs no view, and reports that", () => {
    const sim = stage(5, {}, 1, [0, 1]);
    sim.run(5_000);
    expect(viewsOf(sim)).toEqual(["0: "]);
    for (const node of [0, 1]) expect(said(sim, node)).toEqual(["stalled"]);
    expect(sim.verdict().map(({ property }) => property)).toEqual(["the group is the nodes that want to be in it"]);
    sim.start(2);
    sim.run(8_000);
    expect(viewsOf(sim)).toEqual(["1: 0.1 1.1 2.1"]);
    for (const node of [0, 1]) expect(said(sim, node)).toEqual(["stalled", "resumed"]);
  });

  it("a crash is followed by a view without the crashed node; its restart by one with its next incarnation", async () => {
    const sim = stage(3);
    sim.run(1_000);
    story.length = 0;
    sim.command(2, say);
    sim.crash(2);
    sim.run(2_000);
    expect(viewsOf(sim)).toEqual(["2: 0.1 1.1"]);
    expect(sim.world.state(0).views.view.cut).toEqual([0, 0, 1]);
    sim.start(2);
    sim.run(3_000);
    expect(viewsOf(sim)).toEqual(["3: 0.1 1.1 2.2"]);
    expect(sim.verdict()).toEqual([]);
    await expect(`${story.join("\n")}\n`).toMatchFileSnapshot("stories/crash-and-restart.txt");
  });

  it("a restart that is faster than any suspicion is detected: it is a new incarnation", () => {
    const sim = stage(3);
    sim.run(1_000);
    sim.crash(1);
    sim.start(1);
    sim.run(2_000);
    expect(viewsOf(sim)).toEqual(["2: 0.1 1.2 2.1"]);
    expect(sim.verdict()).toEqual([]);
  });

  it("a leaving node's last message is in its last view, and it returns as a new member", () => {
    const sim = stage(3);
    sim.run(1_000);
    sim.cut(0, 1);
    sim.command(0, say);
    sim.mend(0, 1);
    sim.command(0, leave);
    sim.run(1_500);
    expect(viewsOf(sim)).toEqual(["2: 1.1 2.1"]);
    for (const node of [1, 2]) expect(sim.world.state(node).store.went).toEqual({ 2: [1, 0, 0] });
    expect(said(sim, 0)).toEqual(["ejected", "left"]);
    sim.command(0, join);
    sim.run(2_500);
    expect(viewsOf(sim)).toEqual(["3: 0.2 1.1 2.1"]);
    expect(sim.verdict()).toEqual([]);
  });

  it("any sequence of joins and leaves ends in the last requested state", () => {
    const sim = stage(4);
    for (let at = 1_000; at < 1_300; at += 7) {
      sim.run(at);
      sim.command(at % 4, Math.floor(at / 7) % 2 === 0 ? leave : join);
    }
    for (const node of [0, 1]) sim.command(node, join);
    for (const node of [2, 3]) sim.command(node, leave);
    sim.run(5_000);
    expect(sim.world.state(0).views.view.members.map(({ node }) => node)).toEqual([0, 1]);
    expect(sim.verdict()).toEqual([]);
    for (const node of [0, 1]) sim.command(node, leave);
    sim.run(7_000);
    expect(sim.world.state(0).views.view.members).toEqual([]);
    expect(sim.verdict()).toEqual([]);
  });

  it("a minority installs nothing and reports that it is stalled; it learns of its ejection and returns", () => {
    const sim = stage(5);
    sim.run(1_000);
    sim.partition([
      [0, 1],
      [2, 3, 4],
    ]);
    sim.run(3_000);
    for (const node of [0, 1]) {
      expect(viewOf(sim, node)).toBe("1: 0.1 1.1 2.1 3.1 4.1");
      expect(said(sim, node)).toEqual(["stalled"]);
    }
    for (const node of [2, 3, 4]) expect(viewOf(sim, node)).toBe("2: 2.1 3.1 4.1");
    sim.heal();
    sim.run(6_000);
    for (const node of [0, 1]) expect(said(sim, node)).toEqual(["stalled", "resumed", "ejected"]);
    expect(viewsOf(sim).map((view) => view.replace(/^\d+/, ""))).toEqual([": 0.2 1.2 2.1 3.1 4.1"]);
    expect(sim.verdict()).toEqual([]);
  });

  it("a node whose suspicions outlast a partition does not exclude the others", () => {
    const sim = stage(3);
    sim.run(1_000);
    for (const node of [0, 1]) sim.command(2, suspect(node));
    sim.run(3_000);
    for (const node of [0, 1]) sim.command(2, restore(node));
    sim.run(8_000);
    for (const node of [0, 1]) expect(said(sim, node)).not.toContain("ejected");
    expect(sim.world.state(0).views.view.members.map(({ node }) => node)).toEqual([0, 1, 2]);
    expect(sim.verdict()).toEqual([]);
  });

  it("a short suspicion leaves no timer behind that would exclude nodes later", () => {
    const sim = undetected(3);
    sim.command(0, suspect(1));
    sim.command(0, restore(1));
    sim.run(sim.now + 5_000);
    expect(said(sim, 0)).toEqual([]);
    expect(sim.world.state(0).views).toMatchObject({ phase: { is: "idle" }, isStalled: false, attempts: 0 });
    for (const node of [1, 2]) sim.command(0, suspect(node));
    for (const node of [1, 2]) sim.command(0, restore(node));
    sim.run(sim.now + 5_000);
    expect(said(sim, 0)).toEqual(["stalled", "resumed"]);
    expect(viewsOf(sim)).toEqual(["1: 0.1 1.1 2.1"]);
  });

  it("if no part has a majority, all block until they are connected again, and no node is ejected", () => {
    const sim = stage(4);
    sim.run(1_000);
    sim.partition([
      [0, 1],
      [2, 3],
    ]);
    sim.run(3_000);
    for (const node of range(4))
      expect(sim.world.state(node).views).toMatchObject({ isBlocked: true, isStalled: true });
    sim.heal();
    sim.run(6_000);
    expect(viewsOf(sim)).toEqual(["2: 0.1 1.1 2.1 3.1"]);
    for (const node of range(4)) expect(said(sim, node)).toEqual(["stalled", "resumed"]);
    expect(sim.verdict()).toEqual([]);
  });

  it("when all have crashed and recovered the numbers continue, and no node has messages of the previous view", () => {
    const sim = stage(3);
    sim.run(1_000);
    sim.command(0, say);
    for (const node of range(3)) sim.crash(node);
    for (const node of range(3)) sim.start(node);
    sim.run(2_000);
    expect(viewsOf(sim)).toEqual(["2: 0.2 1.2 2.2"]);
    expect(sim.world.state(0).views.view.cut).toEqual([0, 0, 0]);
    expect(sim.verdict()).toEqual([]);
  });

  it("a coordinator crashes after one node has accepted: the survivors propose the same view", () => {
    const sim = stage(5);
    sim.run(1_000);
    sim.crash(4);
    while (sim.messages.byType.accept === undefined || sim.messages.byType.accept < 5) sim.run(sim.now + 1);
    sim.crash(0);
    const accepted = [1, 2, 3].find((node) => sim.world.state(node).views.accepted !== null) as NodeId;
    const promisedView = sim.world.state(accepted).views.accepted?.view;
    while (sim.world.state(1).views.view.number < 2) sim.run(sim.now + 1);
    expect(sim.world.state(1).views.view).toEqual(promisedView);
    sim.run(sim.now + 2_000);
    expect(viewsOf(sim)).toEqual(["3: 1.1 2.1 3.1"]);
    expect(sim.verdict()).toEqual([]);
  });

  it("a member that does not obtain missing messages in time is left out, and returns", () => {
    const sim = undetected(5);
    for (const deaf of [0, 1, 2]) sim.cut(4, deaf);
    sim.command(4, say); // Only 3 has the message …
    sim.crash(4);
    sim.cut(1, 3); // … and 1 cannot request it.
    sim.command(0, suspect(4));
    sim.run(sim.now + 1_000);
    expect(viewsOf(sim)).toEqual(["1: 0.1 1.1 2.1 3.1 4.1"]);
    const until = sim.now + 300; // This covers a back-off of 100 to 200 ms, and a round.
    while (sim.now < until && viewsOf(sim).some((view) => view.startsWith("1:"))) sim.run(sim.now + 1);
    expect(viewsOf(sim)).toEqual(["2: 0.1 2.1 3.1"]);
    expect(sim.world.state(0).store.went).toEqual({ 2: [0, 0, 0, 0, 1] });
    sim.heal();
    sim.run(sim.now + 1_000);
    expect(viewsOf(sim)).toEqual(["3: 0.1 1.2 2.1 3.1"]);
  });

  it("does not wait once all unsuspected nodes are present", () => {
    const sim = stage(3);
    sim.run(50);
    expect(viewsOf(sim)).toEqual(["1: 0.1 1.1 2.1"]);
    const without = stage(3);
    without.crash(2);
    for (const node of [0, 1]) without.command(node, suspect(2));
    without.run(50);
    expect(viewsOf(without)).toEqual(["1: 0.1 1.1"]);
  });

  it("a lasting minority keeps trying, less and less often", () => {
    const sim = stage(3);
    sim.run(1_000);
    for (const node of [1, 2]) sim.crash(node);
    sim.run(31_000);
    const prepared = sim.messages.byType.prepare ?? 0;
    sim.run(61_000);
    // Each round has two messages. A wait and a failed round together take at least this long.
    expect((sim.messages.byType.prepare ?? 0) - prepared).toBeLessThanOrEqual(2 * (30_000 / (2_000 + 1_000) + 1));
  });

  it.each([
    [
      "maxBackOffMs",
      { maxBackOffMs: 1 },
      "expected views.maxBackOffMs to be a number >= backOffMs, which is 50, got 1",
    ],
  ])("rejects invalid %s", (_name, options, sentence) => {
    expect(() => views(options as Partial<ViewsOptions>)).toThrow(sentence);
  });
});

describe("views: the cost of a change", () => {
  const kinds = ["prepare", "promise", "propose", "accept", "decided", "fill", "filled", "refuse", "wish"];

  /** Counts the view protocol's messages until the group is idle. */
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
    // A node that leaves or joins first notifies all nodes.
    expect(costOf(sim, () => sim.command(last, leave))).toBe(all + nodes - 1);
    expect(costOf(sim, () => sim.command(last, join))).toBe(all + nodes - 1);
    // The crashed node answers neither `prepare` nor `propose`.
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

describe("views: guarantees", () => {
  const title =
    "agreement, no unrequested members, the cut: under any crashes, restarts and partitions; eventually all are in one view, in %i runs";
  it.each([15])(title, { tags: ["long"] }, isKept);
  it.each([40])(title, { tags: ["larger"] }, isKept);

  function isKept(numRuns: number): void {
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
      { numRuns },
    );
  }
});
