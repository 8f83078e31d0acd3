import { describe, expect, it } from "vitest";
import { receive, send, traceOf } from "../../test/trace/small-traces.ts";
import type { TraceEntry, TraceHeader } from "./entry.ts";
import { excerptOf, type Selection } from "./excerpt.ts";
import { drawLanes } from "./picture/lanes.ts";
import { layOut } from "./picture/layout.ts";

const header: TraceHeader = {
  kind: "trace",
  version: 1,
  madeBy: "cluster",
  protocol: "bully",
  form: "node",
  variant: null,
  options: {},
  nodes: [0, 1],
  seed: null,
  violation: null,
};
const entries: TraceEntry[] = [
  { at: 1_000, node: 0, kind: "start" },
  {
    at: 1_005,
    node: 0,
    kind: "send",
    id: "0-1",
    to: 1,
    message: { type: "election", body: { type: "call" } } as never,
  },
  { at: 1_040, node: 0, kind: "timeout", timer: "detector.beat" },
  { at: 1_040, node: 0, kind: "event", event: { type: "detector", body: { type: "suspected" } } as never },
];
const excerpt = (selection: Selection) => excerptOf({ header, entries, clocks: [{}, {}, {}, {}] }, selection);
const part = (selection: Selection) => excerpt(selection).entries;

describe("an excerpt of a trace", () => {
  it("hides entries by short and full names", () => {
    expect(part({ hide: ["call"] })).toHaveLength(3);
    expect(part({ hide: ["election.call", "beat"] })).toHaveLength(2);
    expect(part({ hide: ["suspected"] })).toHaveLength(3);
  });

  it("keeps effects of a hidden entry in their own step", () => {
    expect(excerpt({}).steps).toEqual([
      { at: 1_000, node: 0, indices: [0, 1] },
      { at: 1_040, node: 0, indices: [2, 3] },
    ]);
    expect(excerpt({ hide: ["beat"] }).steps).toEqual([
      { at: 1_000, node: 0, indices: [0, 1] },
      { at: 1_040, node: 0, indices: [2] },
    ]);
    expect(excerpt({ hide: ["call", "beat", "suspected"] }).steps).toEqual([{ at: 1_000, node: 0, indices: [0] }]);
  });

  it("an excerpt of some nodes keeps the effects of messages from others in their steps", () => {
    const between = traceOf(
      [0, 1, 2],
      [
        { at: 0, node: 0, kind: "start" },
        send(1, 2, 0, "a"),
        receive(7, 0, 2, "a"),
        { at: 7, node: 0, kind: "event", event: { type: "elected" } },
      ],
    );
    expect(excerptOf(between, { nodes: [0, 1] }).steps.map(({ at }) => at)).toEqual([0, 7]);
  });

  it("is drawn with every mark at its time", () => {
    const marks = layOut(excerpt({ hide: ["beat"] }), 1_000).steps.map(({ inscription }) => inscription.marks);
    expect(marks).toEqual([["start"], ["event"]]);
    const lines = drawLanes(excerpt({ hide: ["beat"] }), { columns: 80, paint: (_style, text) => text }) ?? [];
    expect(lines.find((line) => line.includes("suspected"))).toMatch(/^\s+40 /);
  });

  it.each<[Selection, string]>([
    [
      { hide: ["foo"] },
      "expected the hidden type to be a message, timer or event of the trace: call, election.call, b",
    ],
    [{ from: 41 }, "expected the beginning to be at most 40 ms, the end of the trace, got 41"],
    [{ to: -1 }, "expected the end to be at least 0 ms, when the trace begins, got -1"],
    [{ nodes: [2] }, "expected the node to be one of 0, 1, got 2"],
  ])("is rejected if invalid: %j", (selection, sentence) => {
    expect(() => part(selection)).toThrow(sentence);
  });
});
