import { expect, test } from "vitest";
import type { TraceEntry } from "../../../src/trace/entry.ts";
import { Chronicle } from "../history/chronicle.ts";
import { clusterOf, event, send } from "../history/fixtures.ts";
import { lastBurst, storyBegin } from "./bursts.ts";

const election = [send(2_000, 0, 1), send(2_001, 0, 2)];

function beginOf(...before: TraceEntry[]): number | null {
  const chronicle = new Chronicle(clusterOf([2, 2, 2]), [...before, ...election]);
  const burst = lastBurst(chronicle.messages);
  return burst && storyBegin(burst, chronicle);
}

test("the story of an election begins with the crash before it", () => {
  const suspicion = event(1_999, 0, "detector", { type: "suspected", node: 2 });
  expect(beginOf({ at: 1_650, node: 2, kind: "crash" }, suspicion)).toBe(1_650);
  expect(beginOf(suspicion)).toBe(1_999);
});

test("what happened long before an election did not cause it", () => {
  expect(beginOf({ at: 900, node: 2, kind: "crash" })).toBe(2_000);
});
