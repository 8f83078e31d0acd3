import { expect, test } from "vitest";
import { fence } from "../../../src/protocols/mutex/family/workload.ts";
import type { TraceEntry } from "../../../src/trace/entry.ts";
import { Chronicle } from "./chronicle.ts";
import { EventLog } from "./event-log.ts";
import { clusterOf, event, nodePicture, replaced, send } from "./fixtures.ts";

const before = clusterOf([2, 2, 2]);

/** Returns the log of these entries, newest first. */
function told(...entries: TraceEntry[]): string[] {
  const log = new EventLog();
  log.add(entries, new Chronicle(before, entries));
  return log.lines.map((line) => line.text);
}

test("describes a failover", () => {
  const story = told(
    { at: 10, node: 2, kind: "crash" },
    event(400, 1, "detector", { type: "suspected", node: 2 }),
    event(401, 1, "election", { type: "elected", leader: 1 }),
    event(402, 0, "detector", { type: "suspected", node: 2 }),
    event(403, 0, "election", { type: "elected", leader: 1 }),
  );
  expect(story).toEqual([
    "node 0 follows node 1",
    "node 0 suspects node 2",
    "node 1 leads",
    "node 1 suspects node 2",
    "node 2 crashed",
  ]);
});

const elected = (at: number, node: number, leader: number) => event(at, node, "election", { type: "elected", leader });

test("merges the same event of several nodes into one line, at the time of the last one", () => {
  const log = new EventLog();
  const entries = [elected(10, 0, 4), elected(15, 4, 4), elected(20, 1, 4), elected(30, 2, 4), elected(40, 3, 4)];
  log.add(entries, new Chronicle(before, entries));
  expect(log.lines.map(({ text, since, at }) => [text, since, at])).toEqual([
    ["nodes 0–3 follow node 4", 10, 40],
    ["node 4 leads", 15, 15],
  ]);
});

test("ends with the last event of each node, in any order of arrival", () => {
  const changes = [elected(10, 0, 4), elected(20, 0, 3), elected(30, 1, 3), elected(40, 1, 4), elected(50, 0, 4)];
  const lines = ["nodes 0 and 1 follow node 4", "nodes 0 and 1 follow node 3", "node 0 follows node 4"];
  expect(told(...changes)).toEqual(lines);
  expect(told(...changes.toSorted((a, b) => a.node - b.node))).toEqual(lines);
  expect(told(...changes.toSorted((a, b) => b.node - a.node))).toEqual(lines);
});

test("names the delivered message, and merges deliveries of the same message", () => {
  const delivers = (at: number, node: number, id: string, payload: string) =>
    event(at, node, "multicast", { type: "delivered", from: 0, payload, id });
  expect(told(delivers(10, 0, "0.1", "hello"), delivers(20, 1, "0.1", "hello"), delivers(30, 2, "1.1", ""))).toEqual([
    "node 2 delivers 1.1",
    "nodes 0 and 1 deliver 0.1, “hello”",
  ]);
});

test("gives deliveries and commands their own topics, so that the log can be filtered", () => {
  const log = new EventLog();
  const entries = [
    event(10, 0, "multicast", { type: "delivered", from: 0, payload: "hello", id: "0.1" }),
    event(20, 0, "multicast", { type: "stable", count: 1 }),
    { at: 30, node: 1, kind: "command", command: { type: "send" } } satisfies TraceEntry,
  ];
  log.add(entries, new Chronicle(before, entries));
  expect(log.lines.map(({ topic, text }) => [topic, text])).toEqual([
    ["command", "node 1 received command “send”"],
    ["protocol", "node 0 emits stable 1"],
    ["delivery", "node 0 delivers 0.1, “hello”"],
  ]);
});

test("does not merge events from before and after a node's restart", () => {
  const story = told(elected(10, 0, 2), { at: 20, node: 2, kind: "start" }, elected(30, 1, 2));
  expect(story).toEqual(["node 1 follows node 2", "node 2 started", "node 0 follows node 2"]);
});

test("keeps suspicions of different nodes apart", () => {
  const suspected = (at: number, node: number, whom: number) =>
    event(at, node, "detector", { type: "suspected", node: whom });
  const story = told(suspected(10, 0, 2), suspected(11, 0, 3), suspected(12, 1, 3), suspected(13, 1, 2));
  expect(story).toEqual(["nodes 0 and 1 suspect node 2", "nodes 0 and 1 suspect node 3"]);
});

test("counts repeated events of one node within a second", () => {
  const starts = [10, 300, 900, 1_500].map((at): TraceEntry => ({ at, node: 0, kind: "start" }));
  expect(told(...starts)).toEqual(["node 0 started", "node 0 started (3 times)"]);
});

test("describes an event without a sentence by its type and fields", () => {
  expect(told(event(1, 0, "mutex", { type: "granted", token: 7 }))).toEqual(["node 0 emits granted 7"]);
});

test("describes lost messages with their type and reason, and counts many of a kind", () => {
  const lost = (node: number): TraceEntry => ({ at: 11, node, kind: "lost", id: `${node}>2@10`, to: 2, why: "cut" });
  const first = [send(10, 0, 2), lost(0)];
  expect(told(...first)).toEqual(["an election message from node 0 to node 2 was lost: the link is cut"]);
  expect(told(...first, send(10, 1, 2), lost(1))).toEqual(["2 election messages were lost: the link is cut"]);
});

test("reports an exit once, in the supervisor's words, whichever source comes first", () => {
  const killed = replaced(before, { ...nodePicture(2, null, "exited"), exit: "killed by SIGKILL" }, 1_500);
  const crash: TraceEntry = { at: 1_480, node: 2, kind: "crash" };
  const chronicle = new Chronicle(before, []);
  const traceFirst = new EventLog();
  traceFirst.add([crash], chronicle);
  traceFirst.observe(killed, before);
  const supervisorFirst = new EventLog();
  supervisorFirst.observe(killed, before);
  supervisorFirst.add([crash], chronicle);
  for (const log of [traceFirst, supervisorFirst])
    expect(log.lines.map(({ text }) => text)).toEqual(["node 2 was killed by SIGKILL"]);
});

test("moves a reported exit to its time in the trace, before its consequences", () => {
  const log = new EventLog();
  const killed = replaced(before, { ...nodePicture(2, null, "exited"), exit: "killed by SIGKILL" }, 1_500);
  log.observe(killed, before);
  const entries = [event(1_450, 0, "detector", { type: "suspected", node: 2 })];
  log.add([...entries, { at: 1_440, node: 2, kind: "crash" }], new Chronicle(before, []));
  expect(log.lines.map(({ text, at }) => [text, at])).toEqual([
    ["node 0 suspects node 2", 1_450],
    ["node 2 was killed by SIGKILL", 1_440],
  ]);
});

test("shows that a node resumed before other nodes trust it again", () => {
  const story = told(
    { at: 1_000, node: 2, kind: "pause" },
    event(1_300, 0, "detector", { type: "suspected", node: 2 }),
    event(2_002, 0, "detector", { type: "restored", node: 2 }),
    { at: 2_000, node: 2, kind: "resume" },
  );
  expect(story).toEqual([
    "node 0 trusts node 2 again",
    "node 2 resumed",
    "node 0 suspects node 2",
    "node 2 was paused",
  ]);
});

test("does not report an expired timer as a failure, since it may be a pacing timer", () => {
  const woken = (at: number, node: number): TraceEntry => ({ at, node, kind: "timeout", timer: "mutex.pass" });
  expect(told(woken(10, 0))).toEqual(["node 0 times out: pass"]);
  expect(told(woken(10, 0), woken(20, 1))).toEqual(["nodes 0 and 1 time out: pass"]);
});

test("writes a packed token as its epoch and its counter", () => {
  expect(told(event(1, 0, "mutex", { type: "granted", token: fence(1, 1) }))).toEqual(["node 0 emits granted 1·1"]);
  expect(told(event(1, 0, "mutex", { type: "granted", token: fence(7, 300) }))).toEqual(["node 0 emits granted 7·300"]);
});

test("reports network changes at their time, including those from before the page was opened", () => {
  const log = new EventLog();
  const lossy = { ...before.network, dropRate: 0.3 };
  const now = { ...before, now: 9_000, network: before.network, networkSince: 8_000 };
  const networks = [
    { since: 0, network: before.network },
    { since: 7_000, network: lossy },
    { since: 8_000, network: before.network },
  ];
  log.recall(networks, now);
  expect(log.lines.map(({ text, at }) => [text, at])).toEqual([
    ["the network drops 0 % of the messages", 8_000],
    ["the network drops 30 % of the messages", 7_000],
  ]);
});

test("reports a cut that separates nodes as a split", () => {
  const log = new EventLog();
  const cuts = [
    [0, 2],
    [2, 0],
    [1, 2],
    [2, 1],
  ] as const;
  log.observe({ ...before, network: { ...before.network, cuts } }, before);
  expect(log.lines.map(({ text }) => text)).toEqual(["the network is split: 0 and 1 | 2"]);
});

test("describes network changes", () => {
  const log = new EventLog();
  const network = {
    cuts: [
      [0, 1],
      [1, 0],
    ],
    dropRate: 0.2,
    delayMs: [10, 50],
  } as const;
  log.observe({ ...before, network }, before);
  log.observe(before, { ...before, network });
  expect(log.lines.map(({ text }) => text)).toEqual([
    "the network adds no delay",
    "the network drops 0 % of the messages",
    "all links mended",
    "the network adds 10 to 50 ms of delay",
    "the network drops 20 % of the messages",
    "link 0–1 cut",
  ]);
});

test("describes the leaders, requests, decisions and answers of a replicated log, and leaves out internal events", () => {
  const command = { client: 1, sequence: 2, operation: "append x" };
  expect(
    told(
      event(10, 0, "log", { type: "led", leader: 2, term: 3 }),
      event(20, 1, "client", { type: "asked", ...command }),
      event(30, 2, "log", { type: "decided", index: 7, command }),
      event(30, 2, "machine", { type: "applied", index: 7, digest: 12345 }),
      event(40, 1, "machine", { type: "answered", sequence: 2, result: "1", index: 7 }),
      event(40, 1, "client", { type: "acknowledged", sequence: 2, index: 7 }),
    ),
  ).toEqual([
    "node 1 receives the answer to command 2",
    "node 2 decides append x at 7",
    "node 1 requests append x",
    "node 0 follows node 2 in term 3",
  ]);
});
