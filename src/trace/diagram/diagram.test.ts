/** Checks the model behind the pictures, and its spans. */
import { describe, expect, it, test } from "vitest";
import { traceOf } from "../../../test/trace/small-traces.ts";
import type { TraceEntry } from "../entry.ts";
import { excerptOf } from "../excerpt.ts";
import { drawSvg } from "../picture/svg.ts";
import { clockText, diagramOf, spansOf } from "./diagram.ts";

const message = { type: "election" };
const entries: TraceEntry[] = [
  { at: 0, node: 0, kind: "start" },
  { at: 0, node: 1, kind: "start" },
  { at: 5, node: 0, kind: "timeout", timer: "beat" },
  { at: 5, node: 0, kind: "send", id: "a", to: 1, message },
  { at: 5, node: 0, kind: "send", id: "b", to: 1, message },
  { at: 9, node: 1, kind: "receive", id: "a", from: 0, message },
  { at: 9, node: 1, kind: "view", view: { role: "follower", leader: 0 } },
  { at: 12, node: 1, kind: "lost", id: "b", to: 1, why: "dropped" },
];
const excerpt = excerptOf(traceOf([0, 1], entries));

describe("the diagram of a run", () => {
  const { lanes, points, arrows } = diagramOf(excerpt);

  it("has a point for each step, with the node's vector clock", () => {
    expect(points.map(({ step, clock }) => `${step.at} ${step.node} ${clockText(clock, lanes)}`)).toEqual([
      "0 0 [1 0]",
      "0 1 [0 1]",
      "5 0 [2 0]",
      "9 1 [2 2]",
      "12 1 ", // The loss is recorded here, but the node takes no step.
    ]);
  });

  it("has the state of the node before and after each step", () => {
    expect(points[3]).toMatchObject({ before: { view: null }, after: { condition: "up", view: { leader: 0 } } });
  });

  it("has messages with both ends", () => {
    expect(arrows.map(({ sent, ended, lost }) => [sent, ended, lost])).toEqual([
      [3, 5, null],
      [4, 7, "dropped"],
    ]);
  });
});

test("includes clocks in a picture on request", () => {
  expect(drawSvg(excerpt, { clocks: true })).toContain('<tspan class="clock">[2 2]</tspan>');
  expect(drawSvg(excerpt)).not.toContain("clock");
});

test("joins equal neighbors into one span and omits spans without duration", () => {
  const changes = [
    { at: -Infinity, value: "a" },
    { at: 1, value: "b" },
    { at: 1, value: "a" },
    { at: 4, value: "c" },
  ];
  expect(spansOf(changes, Infinity, Object.is)).toEqual([
    { from: -Infinity, to: 4, value: "a" },
    { from: 4, to: Infinity, value: "c" },
  ]);
});
