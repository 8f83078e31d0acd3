/**
 * The multicast through a log, with sessions, replicas and log together: every run of two and of three members within bounds. What bounds
 * cut off is not known, so the verdict is never `holds`; what is pinned is that no run within them breaks a property, how many
 * states that are, and that members enter, deliver, and are ejected in them.
 */
import { describe, expect, it } from "vitest";
import type { Experiment } from "../../experiment/experiment.ts";
import { explore } from "../../experiment/explore.ts";

const DELIVERED = ["multicast.installed", "workload.passed", "multicast.delivered"];

type Bounds = Omit<Experiment, "protocol" | "variant">;

function isSound(bounds: Bounds, states: number, events = DELIVERED): void {
  const answer = explore({ protocol: "log-multicast", variant: "bounded", ...bounds });
  expect([answer.verdict, answer.property, answer.ended, answer.states]).toEqual(["unknown", null, null, states]);
  const checked = answer.checked.map(({ name }) => name.replace(/^\w+: /, ""));
  for (const name of ["C6 total order", "C5 happened-before order", "virtual synchrony", "integrity", "log matching"])
    expect(checked).toContain(name);
  expect(Object.keys(answer.reach.events)).toEqual(expect.arrayContaining([...events]));
}

describe("multicast through a log, every run within bounds", () => {
  it("two members send, and one timer runs out, at any time", () => {
    isSound({ nodes: 2, maxTimeouts: 1 }, 584);
  });

  it("likewise, and any one crashes at any time", () => {
    isSound({ nodes: 2, maxTimeouts: 1, crashes: 1 }, 1_688);
  });

  it("two members, and any two timers: sessions are lost", {
    tags: ["long"],
  }, () => {
    isSound({ nodes: 2, maxTimeouts: 2 }, 37_900, [...DELIVERED, "session.lost"]);
  });

  it("two members, of which any one crashes, and comes back", { tags: ["long"] }, () => {
    isSound({ nodes: 2, maxTimeouts: 1, crashes: 1, recoveries: 1 }, 28_992);
  });

  const three: Bounds = { nodes: 3, send: [0], begin: "together", maxTimeouts: 1 };
  it("three members, of which one sends: one timer, five messages on their way", {
    tags: ["long"],
  }, () => {
    isSound({ ...three, maxInFlight: 5 }, 139_361);
  });

  it("likewise with four messages, and any one crashes at any time", { tags: ["long"] }, () => {
    isSound({ ...three, maxInFlight: 4, crashes: 1 }, 81_079);
  });
});
