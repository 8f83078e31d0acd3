import { expect, test } from "vitest";
import type { TraceEntry } from "../trace/entry.ts";
import type { Trace } from "../trace/file.ts";
import { vectorClocks } from "../trace/steps.ts";
import { lostMoments, notShown, repetition, replayed, replayReport } from "./recording.ts";
import { continued, play, scenarioOf, simulatedHeader, staged } from "./simulate.ts";

function recorded(): Trace {
  const made = staged({ scenario: scenarioOf({ protocol: "bully", nodes: 3, crash: [2] }), place: () => "" });
  const entries: TraceEntry[] = [];
  const slices = play(made, { deliveredOnly: false, see: (entry) => entries.push(entry) });
  let slice = slices.next(true);
  while (slice.done !== true) slice = slices.next(true);
  if (slice.value === null) throw new Error("stopped");
  return { header: simulatedHeader(made, slice.value), entries, clocks: vectorClocks(entries) };
}

test("holds if the recording shows every property, and reports the requested fields", () => {
  const trace = recorded();
  const run = replayed(trace, undefined);
  expect(notShown(run)).toBeNull();
  expect(replayReport(trace, run, { check: true })).toMatchObject({ protocol: "bully", nodes: 3, verdict: "holds" });
  expect(Object.keys(replayReport(trace, run, { until: { ms: 1 } }))).toEqual(["protocol", "nodes", "snapshot"]);
});

test("does not pass an incomplete recording, and names a violated property", () => {
  const run = replayed(recorded(), undefined);
  expect(notShown({ ...run, verdict: "unknown" })).toBe("the recording does not show it (not a pass)");
  const [first, ...rest] = run.findings;
  if (first === undefined) throw new Error("no property");
  const findings = [{ ...first, verdict: "violated" as const }, ...rest];
  expect(notShown({ verdict: "violated", findings })).toBe(`violated: ${first.property.name}`);
});

test("states where an infinite counterexample repeats", () => {
  const { header, entries } = recorded();
  const endless = { header: { ...header, violation: { property: "P", claim: "", loopFrom: 4 } }, entries, clocks: [] };
  expect(repetition(endless, "P", "unknown")).toContain("everything from entry 5 on repeats forever");
  expect([repetition(endless, "Q", "unknown"), repetition(endless, "P", "violated")]).toEqual(["", ""]);
});

test("warns about the last moment of a killed process, but not of a simulated node", () => {
  const trace = recorded();
  const entries = [{ kind: "crash", at: 1, node: 2 } as TraceEntry];
  expect(lostMoments({ ...trace, entries })).toEqual([]);
  const real = { ...trace, header: { ...trace.header, madeBy: "cluster" as const } };
  expect(lostMoments({ ...real, entries })[0]).toMatch(/^The last moment of node 2,/);
  expect(lostMoments({ ...real, entries: [] })).toEqual([]);
});

test("continues a recording from a point, with the options that it does not determine", () => {
  const trace = recorded();
  const made = continued(trace, "run.jsonl", { until: { entries: 3 }, crash: [1] });
  expect(made.scenario).toMatchObject({ protocol: "bully", steps: [{ crash: [1] }] });
  expect(() => continued(trace, "run.jsonl", { until: { entries: 3 }, nodes: 4 })).toThrow(
    "expected --nodes to be absent with --from, since the recording sets it",
  );
  expect(() => continued(trace, "run.jsonl", {})).toThrow("expected --until with --from");
});
