import { expect, test } from "vitest";
import { messageTypesOf } from "./declared-messages.ts";

test("in the order of the declaration, parts included", () => {
  expect(messageTypesOf("paxos")).toEqual(["prepare", "promise", "accept", "accepted", "nack", "decided", "learnt"]);
  expect(messageTypesOf("chang-roberts")).toEqual([
    "detector.alive",
    "detector.farewell",
    "election.election",
    "election.elected",
  ]);
  expect(messageTypesOf("causal-total")).toContain("lower.multicast");
});
