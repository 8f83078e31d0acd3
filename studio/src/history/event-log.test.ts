import { expect, test } from "vitest";
import type { TraceEntry } from "../../../src/trace/entry.ts";
import { Chronicle } from "./chronicle.ts";
import { EventLog } from "./event-log.ts";
import { clusterOf, event, nodePicture, replaced, send } from "./fixtures.ts";

const before = clusterOf([2, 2, 2]);

/** The log of these entries, newest first. */
function told(...entries: TraceEntry[]): string[] {
  const log = new EventLog();
  log.add(entries, new Chronicle(before, entries));
  return log.lines.map((line) => line.text);
}

test("a failover in words", () => {
  const story = told(
    { at: 10, node: 2, kind: "crash" },
    event(400, 1, "detector", { type: "suspected", node: 2 }),
    event(401, 1, "election", { type: "elected", leader: 1 }),
    event(402, 0, "detector", { type: "suspected", node: 2 }),
    event(403, 0, "election", { type: "elected", leader: 1 }),
  );
  expect(story).toEqual(["node 0 follows node 1", "node 1 leads", "nodes 0 and 1 suspect node 2", "node 2 crashed"]);
});

test("an event that nobody has a sentence for is told by its type and fields", () => {
  expect(told(event(1, 0, "mutex", { type: "granted", token: 7 }))).toEqual(["node 0 says granted 7"]);
});

test("lost messages say what was lost and why; many of a kind are counted", () => {
  const lost = (node: number): TraceEntry => ({ at: 11, node, kind: "lost", id: `${node}>2@10`, to: 2, why: "cut" });
  const first = [send(10, 0, 2), lost(0)];
  expect(told(...first)).toEqual(["an election message from node 0 to node 2 was lost: the link is cut"]);
  expect(told(...first, send(10, 1, 2), lost(1))).toEqual(["2 election messages were lost: the link is cut"]);
});

test("an exit is told once, in the supervisor's words, whoever speaks first", () => {
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

test("a cut that leaves islands is told as a split", () => {
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

test("what happened to the network", () => {
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
