import { expect, test } from "vitest";
import type { TraceEntry } from "../../../src/trace/entry.ts";
import { Chronicle } from "../history/chronicle.ts";
import { clusterOf, event, receive, send } from "../history/fixtures.ts";
import { workIn } from "./work.ts";

const leader = (at: number, node: number, role: string, leads: number | null): TraceEntry => ({
  at,
  node,
  kind: "view",
  view: { role, leader: leads },
});

/** A trace: node 1 calls an election, and node 2 answers and leads. */
const election = [
  leader(1, 1, "idle", null),
  leader(1, 2, "idle", null),
  send(100, 1, 2),
  leader(101, 1, "campaigning", null),
  receive(110, 1, 2, 100),
  send(111, 2, 1, "answer"),
  leader(112, 2, "leader", 2),
  send(113, 2, 1, "coordinator"),
];
const over = leader(120, 1, "follower", 2);
const LONG_BEFORE = send(20, 0, 1);

test("counts the messages of an election, from its start to its end", () => {
  const cluster = { ...clusterOf([null, null, null]), now: 2_000 };
  const worked = (...entries: TraceEntry[]) => workIn("election", new Chronicle(cluster, entries));
  expect(worked()).toBeNull();
  expect(worked(LONG_BEFORE, ...election)).toEqual({ name: "election", count: 1, messages: 3, isOver: false });
  expect(worked(LONG_BEFORE, ...election, over, send(900, 0, 1))).toEqual({
    name: "election",
    count: 1,
    messages: 3,
    isOver: true,
  });
});

test("counts messages toward entries only while a node waits or is inside", () => {
  const cluster = { ...clusterOf([null, null]), spans: { spans: "section", term: "epoch" } as const, now: 2_000 };
  const section = (at: number, role: string): TraceEntry => ({ at, node: 0, kind: "view", view: { role } });
  const entries = [
    section(1, "released"),
    send(50, 0, 1, "token"),
    section(100, "wanted"),
    send(110, 1, 0, "token"),
    section(120, "held"),
    event(120, 0, "mutex", { type: "entered" }),
    section(140, "released"),
    send(160, 0, 1, "token"),
  ];
  expect(workIn("entry", new Chronicle(cluster, entries))).toEqual({
    name: "entry",
    count: 1,
    messages: 1,
    isOver: true,
  });
});

test("takes decisions from the node that has most, and counts multicasts when they are sent", () => {
  const decided = (at: number, node: number) => event(at, node, "consensus", { type: "decided" });
  const sent: TraceEntry = { at: 5, node: 0, kind: "command", command: { type: "send" } };
  const cluster = { ...clusterOf([null, null]), now: 2_000 };
  const entries = [sent, send(10, 0, 1), send(11, 1, 0), decided(20, 0), decided(21, 0), decided(22, 1)];
  const chronicle = new Chronicle(cluster, entries);
  expect(workIn("decision", chronicle)).toMatchObject({ count: 2, messages: 1 });
  expect(workIn("multicast", chronicle)).toMatchObject({ count: 1, messages: 2 });
  expect(workIn(null, chronicle)).toBeNull();
});
