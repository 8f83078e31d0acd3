import { expect, test } from "vitest";
import type { TraceEntry } from "../../../src/trace/entry.ts";
import { Chronicle } from "../history/chronicle.ts";
import { clusterOf, event, send } from "../history/fixtures.ts";
import { causeOf, lastBurst } from "./bursts.ts";

const election = [send(2_000, 0, 1), send(2_001, 0, 2)];

function begin(...before: TraceEntry[]): number | null {
  const chronicle = new Chronicle(clusterOf([2, 2, 2]), [...before, ...election]);
  const burst = lastBurst(chronicle.messages);
  return burst && causeOf(burst, chronicle);
}

test("shows an election from the crash before it", () => {
  const suspicion = event(1_999, 0, "detector", { type: "suspected", node: 2 });
  expect(begin({ at: 1_650, node: 2, kind: "crash" }, suspicion)).toBe(1_650);
  expect(begin(suspicion)).toBe(1_999);
});

test("ignores events long before an election", () => {
  expect(begin({ at: 900, node: 2, kind: "crash" })).toBe(2_000);
});
