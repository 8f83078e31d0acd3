/** Runs Raft under random faults of the network and the nodes. */
import fc from "fast-check";
import { describe, it } from "vitest";
import { safeThenLive } from "../../../../test/protocols/log-adversity.ts";
import { canonical } from "../../../core/plain.ts";
import { type Raft, raft } from "./raft.ts";

const log = {
  options: fc.record({
    preVote: fc.boolean(),
    checkQuorum: fc.boolean(),
    maxBatchEntries: fc.constantFrom(1, 3, 64),
    maxInFlight: fc.constantFrom(1, 8),
    keptEntries: fc.constantFrom(0, 2),
    minElectionMs: fc.constantFrom(100, 300),
    maxUncommittedChars: fc.constantFrom(20, 4_194_304),
  }),
  leasing: (drift: number) => ({ leaseReads: true, checkQuorum: true, drift }),
  make: (options: object) => raft(options) as never,
  durable: ({ term, votedFor, log, snapshot, configuration }: Raft["state"]) =>
    canonical({ term, votedFor, log, snapshot, configuration: { ...configuration, index: 0 } }),
  decidedAt: ({ commitIndex }: Raft["state"]) => commitIndex,
};

describe("raft in adversity", () => {
  it("is safe, reads included, and elects a leader and decides proposals once faults cease", () =>
    safeThenLive(log, 40));

  it("the same, many runs", { tags: ["larger"] }, () => safeThenLive(log, 300));
});
