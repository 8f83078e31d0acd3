/**
 * Channels as `join()` runs them, with sessions, replicas, log and failure detector: every run of two members within bounds. What bounds
 * cut off is not known, so the verdict is never `holds`; the tests pin that no run within them violates a property, and that members
 * enter, install views and deliver in them.
 */
import { describe, expect, it } from "vitest";
import type { Experiment } from "../../../../experiment/experiment.ts";
import { explore } from "../../../../experiment/explore.ts";

const PROPERTIES = ["integrity", "virtual synchrony", "agreement on views", "no member stays blocked", "log matching"];
const REACHED = [
  "replica.grouped",
  "multicast.asked",
  "multicast.installed",
  "multicast.delivered",
  "multicast.stable",
];

function expectSound(protocol: string, order: string, bounds: Omit<Experiment, "protocol" | "variant">): void {
  const answer = explore({ protocol, variant: "channel-bounded", ...bounds });
  expect([answer.verdict, answer.property, answer.ended]).toEqual(["unknown", null, null]);
  const checked = answer.checked.map(({ name }) => name.replace(/^(\w+: )+/, ""));
  expect(checked).toEqual(expect.arrayContaining([...PROPERTIES, order]));
  expect(Object.keys(answer.reach.events)).toEqual(expect.arrayContaining(REACHED));
}

describe("channels in views on the log, every run within bounds", () => {
  it.each([
    ["view-synchrony", "C4 FIFO order"],
    ["fifo", "C4 FIFO order"],
    ["causal", "C5 happened-before order"],
    ["isis", "C6 total order"],
    ["causal-total", "C6 total order"],
  ])("%s: two members send, and one timer runs out at any time: %s", (protocol, order) => {
    expectSound(protocol, order, { nodes: 2, maxTimeouts: 1 });
  });

  it("the same, and either member crashes at any time", () => {
    expectSound("view-synchrony", "C4 FIFO order", { nodes: 2, maxTimeouts: 1, crashes: 1 });
  });
});
