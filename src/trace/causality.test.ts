import { expect, it } from "vitest";
import { compare } from "../core/clocks.ts";
import type { TraceEntry } from "./entry.ts";
import { vectorClocks } from "./steps.ts";

const message = { type: "hello" };

it("a step has one clock, a message orders two nodes, and events not connected by messages are concurrent", () => {
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

it("counts a step when the recording begins in the middle of it", () => {
  const entries: TraceEntry[] = [
    { at: 0, node: 0, kind: "send", id: "0-1", to: 1, message },
    { at: 1, node: 1, kind: "receive", id: "0-1", from: 0, message },
    { at: 2, node: 0, kind: "pause" },
    { at: 3, node: 0, kind: "resume" },
  ];
  expect(vectorClocks(entries)).toEqual([{ 0: 1 }, { 0: 1, 1: 1 }, { 0: 2 }, { 0: 3 }]);
});

it("the second copy of a message depends on its sending like the first, even after the receiver crashed", () => {
  const receipt = { kind: "receive", id: "0-1", from: 0, message } as const;
  const entries: TraceEntry[] = [
    { at: 0, node: 0, kind: "send", id: "0-1", to: 1, message },
    { at: 1, node: 1, ...receipt },
    { at: 2, node: 1, kind: "crash" },
    { at: 3, node: 1, kind: "start" },
    { at: 4, node: 1, ...receipt },
  ];
  expect(vectorClocks(entries).at(-1)).toEqual({ 0: 1, 1: 4 });
});
