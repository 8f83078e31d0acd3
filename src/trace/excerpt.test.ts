import { describe, expect, it } from "vitest";
import type { TraceEntry } from "./entry.ts";
import { excerptOf, type Selection } from "./excerpt.ts";
import type { TraceHeader } from "./header.ts";

const header: TraceHeader = {
  kind: "trace",
  version: 1,
  madeBy: "cluster",
  protocol: "bully",
  form: "live",
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
const part = (selection: Selection) => excerptOf({ header, entries, clocks: [{}, {}, {}, {}] }, selection).entries;

describe("a part of a trace", () => {
  it("hides by short names and full ones", () => {
    expect(part({ hide: ["call"] })).toHaveLength(3);
    expect(part({ hide: ["election.call", "beat"] })).toHaveLength(2);
    expect(part({ hide: ["suspected"] })).toHaveLength(3);
  });

  it.each<[Selection, string]>([
    [{ hide: ["foo"] }, "expected what is hidden to be a message, timer or event of the trace: call, election.call, b"],
    [{ from: 41 }, "expected the beginning to be at most 40 ms, when the trace ends, got 41"],
    [{ to: -1 }, "expected the end to be at least 0 ms, when the trace begins, got -1"],
    [{ nodes: [2] }, "expected the node to be one of 0, 1, got 2"],
  ])("that is none is refused: %j", (selection, sentence) => {
    expect(() => part(selection)).toThrow(sentence);
  });
});
