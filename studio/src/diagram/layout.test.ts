import { describe, expect, test } from "vitest";
import type { TraceEntry } from "../../../src/trace/entry.ts";
import { Chronicle } from "../history/chronicle.ts";
import { clusterOf, event, receive, send } from "../history/fixtures.ts";
import { type Frame, layOut } from "./layout.ts";

/** One pixel per millisecond; the rows lie at y = 50, 150 and 250. */
const frame: Frame = {
  from: 0,
  to: 1_000,
  width: 1_000,
  nodes: [0, 1, 2],
  rowHeight: 100,
  top: 0,
  origin: null,
  still: true,
};

function pictureOf(entries: readonly TraceEntry[], within: Partial<Frame> = {}) {
  return layOut(new Chronicle(clusterOf([2, 2, 2]), entries), { ...frame, ...within });
}

describe("arrows", () => {
  test("run from sending to receipt, and stop just short of the line", () => {
    const [arrow] = pictureOf([send(100, 0, 2), receive(300, 0, 2, 100)]).arrows;
    expect(arrow).toMatchObject({ fate: "received", start: { x: 100, y: 50 }, end: { x: 300, y: 247 } });
  });

  test("never run back in time, though the clocks of two processes differ", () => {
    const [arrow] = pictureOf([send(100, 2, 1), receive(99.9, 2, 1, 100)]).arrows;
    expect(arrow).toMatchObject({ start: { x: 100, y: 250 }, end: { x: 100, y: 153 } });
  });

  test("of lost messages end where they were lost", () => {
    const lost = (node: number): TraceEntry => ({ at: 120, node, kind: "lost", id: "0>1@100", to: 1, why: "dropped" });
    const [atSender] = pictureOf([send(100, 0, 1), lost(0)]).arrows;
    const [atReceiver] = pictureOf([send(100, 0, 1), lost(1)]).arrows;
    expect(atSender).toMatchObject({ fate: "lost", end: { x: 120, y: 84 } });
    expect(atReceiver).toMatchObject({ fate: "lost", end: { x: 120, y: 134 } });
  });

  test("without an end, or without a beginning, are stubs", () => {
    const [flying] = pictureOf([send(100, 0, 1)]).arrows;
    const [arriving] = pictureOf([receive(300, 0, 1, 100)]).arrows;
    expect(flying).toMatchObject({ fate: "flying", start: { x: 100, y: 50 }, end: { x: 110, y: 80 } });
    expect(arriving).toMatchObject({ fate: "arriving", end: { x: 300, y: 147 } });
  });

  test("are laid out only where they cross the frame", () => {
    const entries = [send(100, 0, 1), receive(110, 0, 1, 100), send(600, 0, 1), receive(900, 0, 1, 600)];
    const { arrows } = pictureOf(entries, { from: 700, to: 800 });
    expect(arrows.map(({ message }) => message.sentAt)).toEqual([600]);
  });
});

describe("life lines", () => {
  test("are interrupted by a crash and thick again only after an election", () => {
    const { lines, marks } = pictureOf([
      { at: 200, node: 2, kind: "crash" },
      { at: 500, node: 2, kind: "start" },
      { at: 600, node: 2, kind: "view", view: { role: "leader", leader: 2 }, state: {} },
    ]);
    const own = lines.filter(({ y }) => y === 250).map(({ x1, x2, condition, leads }) => [x1, x2, condition, leads]);
    expect(own).toEqual([
      [0, 200, "running", false],
      [200, 500, "gone", false],
      [500, 600, "running", false],
      [600, 1_000, "running", true],
    ]);
    expect(marks.map(({ shape, x }) => [shape, x])).toEqual([
      ["crash", 200],
      ["start", 500],
    ]);
  });

  test("say the role where there is room", () => {
    const narrow = pictureOf([
      { at: 980, node: 0, kind: "view", view: { role: "campaigning", leader: null }, state: {} },
    ]);
    expect(narrow.lines.filter(({ y }) => y === 50).map(({ role }) => role)).toEqual([null, null]);
    expect(pictureOf([]).lines.map(({ role }) => role)).toEqual(["follower", "follower", "leader"]);
    expect(pictureOf([], { still: false }).lines.map(({ role }) => role)).toEqual([null, null, null]);
  });
});

describe("marks", () => {
  test("of one row do not write over each other: an election outweighs a suspicion", () => {
    const { marks } = pictureOf([
      event(100, 0, "detector", { type: "suspected", node: 2 }),
      event(105, 0, "election", { type: "elected", leader: 1 }),
      event(105, 1, "detector", { type: "suspected", node: 2 }),
    ]);
    expect(marks.map(({ label, labelDx }) => [label, labelDx])).toEqual([
      ["suspected 2", null],
      ["elected 1", 12],
      ["suspected 2", 12],
    ]);
  });

  test("in a crowd, the last of equal weight has the word", () => {
    const { marks } = pictureOf([
      { at: 100, node: 2, kind: "start" },
      event(104, 2, "election", { type: "elected", leader: 1 }),
      event(108, 2, "election", { type: "elected", leader: 2 }),
    ]);
    const labelled = marks.filter(({ labelDx }) => labelDx !== null);
    expect(labelled.map(({ label }) => label)).toEqual(["elected 2"]);
  });
});

describe("bursts", () => {
  test("are what is too close together to be read", () => {
    const burst = [100, 101, 102].map((at) => send(at, 0, 1));
    const far = pictureOf([...burst, send(700, 0, 1)]);
    expect(far.bursts.map(({ burst: { from, to, messages } }) => [from, to, messages.length])).toEqual([[100, 102, 3]]);
    expect(pictureOf(burst, { from: 99, to: 104 }).bursts).toEqual([]);
  });
});
