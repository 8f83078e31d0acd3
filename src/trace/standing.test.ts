import { expect, test } from "vitest";
import { send } from "../../test/trace/small-traces.ts";
import type { TraceEntry } from "./entry.ts";
import { standingsBefore } from "./standing.ts";

const conditionBefore = (...entries: TraceEntry[]) => standingsBefore([0, 1], entries).get(0)?.condition;
const turn = (at: number, kind: "start" | "crash" | "pause" | "resume"): TraceEntry => ({ at, node: 0, kind });

test("a node that starts first was down, one that resumes first was paused, and any other was up", () => {
  expect(conditionBefore(turn(1, "start"), send(2, 0, 1, "a"))).toBe("down");
  expect(conditionBefore(turn(1, "resume"), send(2, 0, 1, "a"))).toBe("paused");
  expect(conditionBefore(turn(1, "crash"), turn(2, "start"))).toBe("up");
  expect(conditionBefore(turn(1, "pause"), turn(2, "resume"))).toBe("up");
  expect(conditionBefore(send(1, 0, 1, "a"))).toBe("up");
});

test("a recording of members on other machines has no crash before a start, so a node that sent before it was up", () => {
  const gap: TraceEntry = { at: 2, node: 0, kind: "gap", dropped: 1 };
  const view: TraceEntry = { at: 0, node: 0, kind: "view", view: { role: "follower", leader: 1 }, state: {} };
  expect(conditionBefore(view, send(1, 0, 1, "a"), gap, turn(3, "start"))).toBe("up");
});

test("actions of others on a node, and losses on the way to it, do not show its standing", () => {
  const lost: TraceEntry = { at: 1, node: 0, kind: "lost", id: "a", to: 0, why: "down" };
  const fault: TraceEntry = { at: 1, node: 0, kind: "fault", what: "link to 1 cut" };
  expect(conditionBefore(lost, fault)).toBe("down");
  expect(conditionBefore(lost, fault, turn(2, "start"))).toBe("down");
});
