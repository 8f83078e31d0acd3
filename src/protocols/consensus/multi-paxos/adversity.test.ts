/** Multi-Paxos through anything that can happen to a network and its nodes, drawn at random. */
import fc from "fast-check";
import { describe, it } from "vitest";
import { safeThenLive } from "../../../../test/protocols/log-adversity.ts";
import { type MultiPaxos, multiPaxos } from "./multi-paxos.ts";

const log = {
  options: fc.record({
    window: fc.constantFrom(1, 2, 16),
    keep: fc.constantFrom(0, 2),
    announces: fc.boolean(),
    leaseMs: fc.constantFrom(150, 400),
  }),
  leasing: (drift: number) => ({ reads: "lease", drift }),
  make: (options: object) => multiPaxos(options) as never,
  durable: ({ promised, log, snapshot }: MultiPaxos["state"]) => structuredClone({ promised, log, snapshot }),
  decidedAt: ({ decided }: MultiPaxos["state"]) => decided,
};

describe("multi-paxos in adversity", () => {
  it("is safe, reads included, and has a leader and decides what is proposed once faults cease", () =>
    safeThenLive(log, 40));

  it("the same, many runs", { tags: ["larger"] }, () => safeThenLive(log, 300));
});
