/**
 * Explores the lock service of members as `join()` builds it by default, with sessions, replica, log and one lock:
 * every run of two and of three members within bounds. Because the bounds cut runs off, the verdict is never `holds`.
 * The tests record that no run violates a property, how many states there are, and that members acquire, lose and
 * release locks.
 */
import { describe, expect, it } from "vitest";
import type { Experiment } from "../../../src/experiment/experiment.ts";
import { explore } from "../../../src/experiment/explore.ts";

type Bounds = Omit<Experiment, "protocol" | "variant">;

const explored = (bounds: Bounds) => explore({ protocol: "coordination-service", variant: "bounded", ...bounds });

function isSound(bounds: Bounds, states: number, events: readonly string[]): void {
  const answer = explored(bounds);
  expect([answer.verdict, answer.property, answer.ended, answer.states]).toEqual(["unknown", null, null, states]);
  expect(answer.checked.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["ME1 safety", "tokens grow", "agreement", "no lock held twice"]),
  );
  expect(Object.keys(answer.reach.events)).toEqual(expect.arrayContaining([...events]));
}

describe("the lock service of members, every run within bounds", () => {
  it("two members want the lock, and one timer expires at any time", () => {
    isSound({ nodes: 2, maxTimeouts: 1 }, 404, ["mutex.entered"]);
  });

  it("two members, and two timers that expire while no message is in transit: sessions are lost, and locks change hands", () => {
    isSound({ nodes: 2, timers: "quiet", maxTimeouts: 2 }, 3_930, ["mutex.entered", "mutex.lost", "mutex.exited"]);
  });

  it("two members, and any two timers expire at any time", { tags: ["long"] }, () => {
    isSound({ nodes: 2, maxTimeouts: 2 }, 10_586, ["mutex.entered", "mutex.lost"]);
  });

  const three: Bounds = { nodes: 3, request: [0, 1], maxTimeouts: 1 };
  it("three members: two want the lock, and one timer expires", { tags: ["long"] }, () => {
    isSound(three, 33_122, ["mutex.entered"]);
  });

  it("three members, and any one crashes at any time", { tags: ["long"] }, () => {
    isSound({ ...three, crashes: 1 }, 110_693, ["mutex.entered"]);
  });
});
