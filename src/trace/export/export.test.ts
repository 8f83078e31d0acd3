import { describe, expect, it } from "vitest";
import { everyKind, lasso, receive, send, traceOf } from "../../../test/trace/small-traces.ts";
import type { VectorClock } from "../../core/clocks.ts";
import { excerptOf } from "../excerpt.ts";
import { SHIVIZ_PARSER, shiviz } from "./shiviz.ts";
import { statisticsOf } from "./statistics.ts";

describe("ShiViz", () => {
  /** Reads a file like ShiViz: the parser, the delimiter, the log. */
  function parsed(text: string): { host: string; event: string; clock: Record<string, number> }[] {
    const [parser = "", delimiter, ...log] = text.split("\n");
    expect(delimiter).toBe("");
    const found = log.join("\n").trim().matchAll(new RegExp(parser, "g"));
    return [...found].map(({ groups }) => ({
      host: groups?.host ?? "",
      event: groups?.event ?? "",
      clock: JSON.parse(groups?.clock ?? "") as Record<string, number>,
    }));
  }

  it.each([
    ["a whole trace", excerptOf(everyKind)],
    ["a part of one", excerptOf(everyKind, { from: 10, to: 40 })],
    ["a counterexample", excerptOf(lasso)],
  ])("reads %s: each node's own count goes 1, 2, 3 …, and every line belongs to an event", (_name, excerpt) => {
    const text = shiviz(excerpt);
    const events = parsed(text);
    expect(text.split("\n").length).toBe(events.length * 2 + 3);
    const counts = new Map<string, number>();
    for (const { host, clock } of events) {
      expect(clock[host]).toBe((counts.get(host) ?? 0) + 1);
      counts.set(host, clock[host] as number);
    }
    expect([...counts.keys()].sort()).toEqual([...new Set(excerpt.entries.map(({ node }) => `node${node}`))].sort());
  });

  it("keeps an event with several lines as one, with the clocks it depends on", () => {
    const trace = traceOf([0, 1], [send(0, 0, 1, "a", "two\nlines"), receive(1, 1, 0, "a", "two\nlines")]);
    expect(shiviz(excerptOf(trace))).toBe(
      `${SHIVIZ_PARSER}\n\nsends two lines to 1\nnode0 {"node0":1}\nreceives two lines from 0\nnode1 {"node0":1,"node1":1}\n`,
    );
  });
});

describe("statistics", () => {
  it("count the entries of the trace", () => {
    const statistics = statisticsOf(excerptOf(everyKind));
    expect(statistics).toMatchObject({
      entries: everyKind.entries.length,
      fromMs: 0,
      toMs: 1_000,
      messages: { sent: 6, received: 4, lost: 2, underWay: 1, lostBy: { crashed: 1, cut: 1 } },
      crashes: 1,
      restarts: 1,
      missingEntries: 12,
      timeouts: { "election.answer": 1 },
      events: { elected: 1 },
      firstLeader: { node: 0, atMs: 20 },
      causalDepth: 3,
    });
    expect(statistics.byType.election).toEqual({
      sent: 3,
      received: 1,
      lost: 2,
      delayMs: { min: 7, median: 7, p99: 7, max: 7 },
    });
    expect(statistics.byType.beat).toMatchObject({ sent: 1, received: 0, delayMs: null });
    expect(statistics.byLink).toEqual({ "0>1": 2, "0>2": 1, "1>0": 1, "1>1": 1, "2>0": 1 });
    expect(statistics.byNode[2]).toEqual({ sent: 1, received: 1, steps: 3 });
  });

  it("use nearest ranks for delays, and count a copy of a message as another receipt", () => {
    const trace = traceOf(
      [0, 1],
      [
        ...Array.from({ length: 100 }, (_, i) => send(i, 0, 1, `${i}`)),
        ...Array.from({ length: 100 }, (_, i) => receive(100 + 2 * i, 1, 0, `${i}`)),
        receive(400, 1, 0, "0"),
      ],
    );
    const { byType, causalDepth } = statisticsOf(excerptOf(trace));
    expect(byType.hello).toEqual({
      sent: 100,
      received: 101,
      lost: 0,
      delayMs: { min: 100, median: 150, p99: 199, max: 400 },
    });
    expect(causalDepth).toBe(1);
  });

  it("the depth of a ring election is its number of messages", () => {
    const ring = [0, 1, 2, 3];
    const entries = ring.flatMap((node, i) => [
      send(i, node, (node + 1) % 4, `${i}`),
      receive(i + 0.5, (node + 1) % 4, node, `${i}`),
    ]);
    expect(statisticsOf(excerptOf(traceOf(ring, entries))).causalDepth).toBe(4);
  });
});

describe("an excerpt", () => {
  const clockOf = (clocks: readonly VectorClock[]): VectorClock | undefined => clocks[0];

  it("keeps the clocks of the whole trace and the standings of the nodes", () => {
    const part = excerptOf(everyKind, { from: 25, to: 40 });
    expect(part.entries.map(({ at }) => at)).toEqual([27, 30, 34, 36]);
    expect(clockOf(part.clocks)).toEqual({ 0: 2, 1: 4 });
    expect(part.before.get(0)).toMatchObject({ condition: "up", view: { role: "leader", leader: 0 } });
  });

  it("of some nodes has only the messages between them", () => {
    const part = excerptOf(everyKind, { nodes: [0, 1] });
    expect(part.header.nodes).toEqual([0, 1]);
    expect(part.entries.some((entry) => entry.kind === "send" && entry.to === 2)).toBe(false);
    expect(() => excerptOf(everyKind, { nodes: [7] })).toThrow("expected the node to be one of 0, 1, 2, got 7");
  });

  it("omits hidden messages and timers, and their losses", () => {
    const part = excerptOf(everyKind, { hide: ["election", "election.answer"] });
    expect(part.entries.filter(({ kind }) => kind === "lost" || kind === "timeout")).toEqual([]);
  });

  it("counts the time of a recording from its first entry, and adjusts the start of a repeated part", () => {
    const live = { ...everyKind, header: { ...everyKind.header, madeBy: "cluster" as const } };
    const epoch = { ...live, entries: live.entries.map((entry) => ({ ...entry, at: entry.at + 1.7e12 })) };
    expect(excerptOf(epoch, { from: 30, to: 40 }).entries).toHaveLength(3);
    expect(excerptOf(lasso, { from: 1 }).header.violation?.loopFrom).toBe(2);
  });
});
