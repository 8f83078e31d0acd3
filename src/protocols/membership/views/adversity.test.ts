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
  suspect,
  undetected,
  viewOf,
  viewsOf,
} from "../../../../test/protocols/views-stage.ts";
import type { NodeId } from "../../../core/protocol.ts";
import type { Simulation } from "../../../sim/simulation.ts";

const phaseOf = (sim: Simulation<Group>, node: NodeId): string => sim.world.state(node).views.phase.is;

/** Well below the maximum duration of a step in a round. */
const SOON_MS = 400;

describe("views: a member restarts before any node has noticed, while a round needs its promise", () => {
  /** Node 2 multicasts a message that no other node receives. Then 4 crashes, and 0 starts a round. */
  function lastWord(): Simulation<Group> {
    const sim = undetected(5);
    for (const deaf of [0, 1, 3, 4]) sim.cut(2, deaf);
    sim.command(2, say);
    sim.run(sim.now + 10);
    for (const deaf of [0, 1, 3, 4]) sim.mend(2, deaf);
    sim.crash(4);
    sim.command(0, suspect(4));
    return sim;
  }

  it("the others do not wait for its lost messages, and are not left out because of them", () => {
    const sim = lastWord();
    while (phaseOf(sim, 0) !== "filling") sim.run(sim.now + 1);
    sim.crash(2);
    sim.start(2);
    sim.run(sim.now + SOON_MS);
    expect(viewsOf(sim)).toEqual(["2: 0.1 1.1 2.2 3.1"]);
    for (const node of [0, 1, 3]) expect(said(sim, node)).toEqual([]);
  });

  it("the same, if the round is still being prepared", () => {
    const sim = lastWord();
    sim.cut(3, 0);
    while (sim.messages.byType.prepare !== 4) sim.run(sim.now + 1);
    sim.run(sim.now + 10); // Nodes 1 and 2 have promised.
    expect(sim.world.state(0).views.phase).toMatchObject({ is: "preparing", promises: { 1: {}, 2: {} } });
    sim.crash(2);
    sim.start(2);
    sim.run(sim.now + 10);
    sim.mend(3, 0);
    sim.command(0, restore(3)); // The request is repeated.
    sim.run(sim.now + SOON_MS);
    expect(viewsOf(sim)).toEqual(["2: 0.1 1.1 2.2 3.1"]);
    for (const node of [0, 1, 3]) expect(said(sim, node)).toEqual([]);
  });

  it("ignores a promise that arrives after the restart is known", () => {
    const sim = lastWord();
    sim.cut(3, 0);
    sim.setLink(2, 0, { delay: 100, order: "none" });
    while (!sim.world.state(2).views.isBlocked) sim.run(sim.now + 1);
    sim.crash(2);
    sim.setLink(2, 0, { delay: 5, order: "none" });
    sim.start(2);
    sim.run(sim.now + 110);
    expect(sim.world.state(0).views.phase).toMatchObject({ is: "preparing", promises: { 2: { incarnation: 2 } } });
    sim.mend(3, 0);
    sim.command(0, restore(3));
    sim.run(sim.now + SOON_MS);
    expect(viewsOf(sim)).toEqual(["2: 0.1 1.1 2.2 3.1"]);
    for (const node of [0, 1, 3]) expect(said(sim, node)).toEqual([]);
  });

  it("a node that does not return by itself does not stay in the view with its last incarnation", () => {
    const sim = stage(3, { joins: false });
    for (const node of range(3)) sim.command(node, join);
    sim.run(1_000);
    expect(viewsOf(sim)).toEqual(["1: 0.1 1.1 2.1"]);
    sim.crash(2);
    sim.start(2);
    sim.run(2_000);
    expect(viewsOf(sim)).toEqual(["2: 0.1 1.1"]);
    expect(sim.verdict()).toEqual([]);
  });
});

describe("views: a message that gets lost", () => {
  /** Makes 4 crash, with its last message received only by 3. */
  function crashOf4(): Simulation<Group> {
    const sim = undetected(5);
    for (const deaf of [0, 1, 2]) sim.cut(4, deaf);
    sim.command(4, say);
    sim.crash(4);
    sim.command(0, suspect(4));
    return sim;
  }

  function sentAt(type: string): number {
    const sim = crashOf4();
    const before = sim.messages.byType[type] ?? 0;
    while ((sim.messages.byType[type] ?? 0) === before) sim.run(sim.now + 1);
    return sim.now;
  }

  it.each([
    ["prepare", [[0, 1]]],
    ["promise", [[1, 0]]],
    ["fill", [[0, 1]]],
    ["filled", [[1, 0]]],
    [
      "propose",
      [
        [0, 1],
        [0, 2],
      ],
    ],
    [
      "accept",
      [
        [1, 0],
        [2, 0],
      ],
    ],
  ] as const)("%s: it is repeated in the same round, and no node is left out", (type, links) => {
    const at = sentAt(type);
    const sim = crashOf4();
    sim.run(at - 1);
    for (const [from, to] of links) sim.cut(from, to);
    const prepared = sim.messages.byType.prepare ?? 0;
    sim.run(at);
    for (const [from, to] of links) sim.mend(from, to);
    sim.run(at + 600);
    expect(viewsOf(sim)).toEqual(["2: 0.1 1.1 2.1 3.1"]);
    for (const node of range(4)) expect(said(sim, node)).toEqual([]);
    const repeated = type === "prepare" ? 4 + 1 : type === "promise" ? 1 : 0;
    expect((sim.messages.byType.prepare ?? 0) - prepared).toBe(repeated);
  });

  it("no message is repeated to a suspected node", () => {
    const sim = crashOf4();
    for (const node of [1, 2, 3]) sim.crash(node);
    for (const node of [1, 2]) sim.command(0, suspect(node));
    const before = sim.messages.byType.prepare ?? 0;
    while (phaseOf(sim, 0) !== "preparing") sim.run(sim.now + 1);
    sim.run(sim.now + 900);
    expect((sim.messages.byType.prepare ?? 0) - before).toBe(4 + 1);
  });
});

describe("views: a leaving node", () => {
  const saidBy = (sim: Simulation<Group>, node: NodeId): string[] =>
    sim.events(node).flatMap(({ type, body }) => (type === "views" ? [body.type] : []));

  it("reports it when it is out of the group, as its last event", () => {
    const sim = stage(3);
    sim.run(1_000);
    sim.command(2, leave);
    sim.run(2_000);
    expect(saidBy(sim, 2)).toEqual(["installed", "flush", "ejected", "left"]);
  });

  it("is not in the next view if it leaves while a round is about to admit it", () => {
    const sim = stage(3, { joins: false });
    for (const node of [0, 1]) sim.command(node, join);
    sim.run(1_000);
    const { promised } = sim.world.state(2).views;
    sim.command(2, join);
    while (sim.world.state(2).views.promised === promised) sim.run(sim.now + 1);
    sim.command(2, leave);
    sim.run(3_000);
    expect(saidBy(sim, 2)).toEqual(["left"]);
    for (const node of [0, 1]) expect(viewOf(sim, node)).toMatch(/^\d: 0\.1 1\.1$/);
    expect(sim.verdict()).toEqual([]);
  });

  it("cancels its admission if it leaves before a round has begun", () => {
    const sim = stage(3, { joins: false });
    for (const node of [0, 1]) sim.command(node, join);
    sim.run(1_000);
    for (const command of [join, leave]) sim.command(2, command);
    sim.run(3_000);
    expect(saidBy(sim, 2)).toEqual(["left"]);
    for (const node of [0, 1]) expect(viewOf(sim, node)).toBe("1: 0.1 1.1");
  });

  it("has not left if it is back before it has reported leaving", () => {
    const sim = stage(3, { joins: false });
    for (const node of [0, 1]) sim.command(node, join);
    sim.run(1_000);
    for (const command of [join, leave, join]) sim.command(2, command);
    sim.run(3_000);
    expect(saidBy(sim, 2)).toEqual(["installed"]);
    expect(sim.verdict()).toEqual([]);
  });
});

it("views: an unknown node is neither awaited nor sent any messages", () => {
  const sim = undetected(3);
  const before = sim.messages.total;
  for (const node of [0, 9]) {
    sim.command(0, suspect(node));
    sim.command(0, restore(node));
  }
  sim.run(sim.now + 100);
  expect(sim.messages.total).toBe(before);
  expect(sim.world.state(0).views).toMatchObject({ suspected: [], isStalled: false });
});
