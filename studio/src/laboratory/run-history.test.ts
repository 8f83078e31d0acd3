import { describe, expect, test } from "vitest";
import type { Frame } from "../diagram/frame.ts";
import { layOut } from "../diagram/layout.ts";
import type { ShownDrawing } from "./engine/drawing.ts";
import { TestedLaboratory } from "./engine/laboratory-under-test.ts";
import { RunHistory } from "./run-history.ts";

const WIDTH = 1_000;

const frameAt = ({ nodes }: ShownDrawing, from: number, to: number): Frame => ({
  ...{ from, to, width: WIDTH, nodes, rowHeight: 84, top: 14, origin: null, still: true },
});

describe.each([
  ["isis", { protocol: "isis", nodes: "4", messages: "4" }],
  ["raft", { protocol: "raft", nodes: "4", commands: "6", until: "400" }],
  ["token-ring", { protocol: "token-ring", nodes: "4", entries: "3" }],
  ["bully", { scenario: "bully-a-highest-crashed" }],
])("a window of a run of %s", (_name, words) => {
  test("is laid out as if the whole run had been scanned", async () => {
    const { drawing } = await new TestedLaboratory().run(words);
    for (const axis of [drawing.axes.events, drawing.axes.time]) {
      const history = new RunHistory(drawing, axis);
      const whole = history.between(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY);
      expect(whole.messages.length).toBe(drawing.messages.length);
      for (let from = -18; from < axis.end; from += 430) {
        const frame = frameAt(drawing, from, from + 700);
        expect(layOut(history, frame)).toEqual(layOut(whole, frame));
      }
    }
  });
});

test("lays out a frame of a run of 100,000 events at nearly the same cost as one of a thousandth of it", () => {
  const costOf = (steps: number): number => {
    const drawing = drawingOf(steps);
    const history = new RunHistory(drawing, drawing.axes.events);
    const before = history.touched;
    for (let frame = 0; frame < 10; frame++) {
      const from = drawing.axes.events.end / 2 + frame * 20;
      const picture = layOut(history, frameAt(drawing, from, from + WIDTH));
      expect(picture.arrows.length).toBeGreaterThan(20);
    }
    return history.touched - before;
  };
  expect(costOf(50_000)).toBeLessThan(1.5 * costOf(500));
});

test("lays out a whole run of 100,000 events from samples, which are computed once", () => {
  const drawing = drawingOf(50_000);
  const { end } = drawing.axes.events;
  const history = new RunHistory(drawing, drawing.axes.events);
  const frame = frameAt(drawing, -18, end + 18);
  const { arrows, crowd, marks, states } = layOut(history, frame);
  expect(crowd?.count).toBe(drawing.messages.length);
  expect(arrows.length).toBeGreaterThan(300);
  expect([arrows, marks, states].every(({ length }) => length <= 2_000)).toBe(true);
});

test("lays out a whole long run at the cost of the shown part once the levels exist", () => {
  const drawing = drawingOf(50_000);
  const history = new RunHistory(drawing, drawing.axes.events);
  expect([...history.making()].length).toBeLessThan(30);
  const before = history.touched;
  layOut(history, frameAt(drawing, -18, drawing.axes.events.end + 18));
  // At most 2,000 items of each of five kinds are shown, and finding each takes at most logarithmic time.
  expect(history.touched - before).toBeLessThan(5 * 2_000 * 17);
});

/**
 * Returns a drawing of four nodes that act in turn. In each step, a node sends a message to the next one; in every
 * other step, it is inside.
 */
function drawingOf(count: number): ShownDrawing {
  const steps = Array.from({ length: count }, (_, step) => step * 20);
  const axis = { steps, ticks: steps.map((at) => ({ at, text: "" })), breaks: [], networks: [], end: count * 20 };
  const name = { full: "m", short: "m", part: null };
  return {
    nodes: [0, 1, 2, 3],
    inks: { m: 0 },
    axes: { events: axis, time: axis },
    messages: steps.map((_, step) => ({
      ...{ id: String(step), name, from: step % 4, to: (step + 1) % 4, label: "m", title: "m" },
      ...{ sent: step, ended: step + 1, lost: null },
    })),
    marks: steps.map((_, step) => ({ step, node: step % 4, kind: "event", label: "", nudge: 0 })),
    lives: [0, 1, 2, 3].map((node) => ({ node, from: null, to: null, condition: "up", leads: false, role: "r" })),
    states: steps.map((_, step) => ({ node: step % 4, from: step, to: step + 2, kind: "inside", words: "" })),
    held: [],
    clocks: [],
  };
}
