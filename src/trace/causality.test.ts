import { expect, it } from "vitest";
import { compare } from "../core/clocks.ts";
import { vectorClocks } from "./causality.ts";
import type { TraceEntry } from "./entry.ts";

const message = { type: "hello" };

it("a step shares one clock, a message orders two nodes, and what no message joins is concurrent", () => {
  const entries: TraceEntry[] = [
    { at: 0, node: 0, kind: "start" },
    { at: 0, node: 0, kind: "send", id: "0-1", to: 1, message },
    { at: 1, node: 2, kind: "start" },
    { at: 2, node: 1, kind: "receive", id: "0-1", from: 0, message },
    { at: 2, node: 1, kind: "event", event: { type: "heard" } },
    { at: 3, node: 0, kind: "timeout", timer: "later" },
  ];
  const clocks = vectorClocks(entries);
  expect(clocks).toEqual([{ 0: 1 }, { 0: 1 }, { 2: 1 }, { 0: 1, 1: 1 }, { 0: 1, 1: 1 }, { 0: 2 }]);
  expect(compare(clocks[1] ?? {}, clocks[4] ?? {})).toBe("before");
  expect(compare(clocks[4] ?? {}, clocks[5] ?? {})).toBe("concurrent");
  expect(compare(clocks[2] ?? {}, clocks[4] ?? {})).toBe("concurrent");
});
