import { describe, expect, test } from "vitest";
import type { TraceEntry } from "../../../src/trace/entry.ts";
import { Chronicle, KEPT_MS } from "./chronicle.ts";
import { EventLog } from "./event-log.ts";
import { clusterOf, event, nodePicture, receive, replaced, send } from "./fixtures.ts";

const beat = (at: number): TraceEntry => ({
  at,
  node: 0,
  kind: "send",
  id: `beat ${at}`,
  to: 1,
  message: { type: "detector", body: { type: "alive" } } as { type: string },
});

describe("messages", () => {
  test("joins the two ends of a message, in whichever order they arrive", () => {
    const chronicle = new Chronicle(clusterOf([1, 1]), [receive(12, 0, 1, 10), send(10, 0, 1)]);
    expect(chronicle.messages).toHaveLength(1);
    expect(chronicle.messages[0]).toMatchObject({
      from: 0,
      to: 1,
      sentAt: 10,
      receivedAt: 12,
      name: { short: "election" },
    });
  });

  test("records where and why a message was lost", () => {
    const lost: TraceEntry = { at: 11, node: 0, kind: "lost", id: "0>1@10", to: 1, why: "cut" };
    const chronicle = new Chronicle(clusterOf([1, 1]), [send(10, 0, 1), lost]);
    expect(chronicle.messages[0]?.loss).toEqual({ at: 11, node: 0, why: "cut" });
  });

  test("treats heartbeats as chatter from the first one, and leaves no marks for their timers", () => {
    const timeout: TraceEntry = { at: 9, node: 0, kind: "timeout", timer: "detector.beat" };
    const chronicle = new Chronicle(clusterOf([1, 1]), [timeout, beat(10)]);
    expect([chronicle.messages.length, chronicle.chatter.length, chronicle.marks.length]).toEqual([0, 1, 0]);
  });

  test("treats a steady message type as chatter, but not a burst of any size", () => {
    const burst = Array.from({ length: 500 }, (_, i) => send(100 + i / 10, 0, 1, "coordinator", `burst ${i}`));
    const steady = Array.from({ length: 300 }, (_, i) => send(1_000 + i * 100, 0, 1, "ping", `ping ${i}`));
    const chronicle = new Chronicle(clusterOf([1, 1], 31_000), [...burst, ...steady]);
    expect([...new Set(chronicle.chatter.map(({ name }) => name.short))]).toEqual(["ping"]);
    const bursts = chronicle.messages.filter(({ name }) => name.short === "coordinator");
    expect(bursts).toHaveLength(500);
  });

  test("folds both requests and answers that have the same rate", () => {
    const pairs = Array.from({ length: 400 }, (_, i) => [
      send(i * 25, 4, i % 4, "coordinator", `renewal ${i}`),
      send(i * 25 + 1, i % 4, 4, "confirm", `confirmation ${i}`),
    ]).flat();
    const chronicle = new Chronicle(clusterOf([4, 4, 4, 4, 4], 10_000), pairs);
    expect([...new Set(chronicle.messages.map(({ name }) => name.short))]).toEqual([]);
    expect(new Set(chronicle.chatter.map(({ name }) => name.short))).toEqual(new Set(["coordinator", "confirm"]));
  });

  test("shows the messages that break a rhythm", () => {
    const renewals = (from: number, to: number) =>
      Array.from({ length: (to - from) / 25 }, (_, i) => send(from + i * 25, 4, i % 4, "coordinator"));
    const news = [send(12_000, 3, 0, "coordinator", "news"), send(12_001, 3, 1, "coordinator", "more news")];
    const entries = [...renewals(0, 10_000), ...news, ...renewals(12_500, 22_000)];
    const chronicle = new Chronicle(clusterOf([3, 3, 3, 3, null], 22_000), entries);
    const shown = chronicle.messages.map(({ sentAt }) => sentAt ?? 0);
    expect(shown).toContain(12_000);
    expect(shown.filter((at) => at < 9_000 || at >= 13_000)).toEqual([]);
  });

  test("does not treat repeated elections over bad links as chatter", () => {
    const beats = Array.from({ length: 2_400 }, (_, i) => beat(i * 25));
    // About fifty messages every three seconds.
    const elections = Array.from({ length: 1_000 }, (_, i) =>
      send(Math.floor(i / 50) * 2_900 + (i % 50), 0, 1, "election", `election ${i}`),
    );
    const entries = [...beats, ...elections].sort((a, b) => a.at - b.at);
    const chronicle = new Chronicle(clusterOf([1, 1], 60_000), entries);
    expect([chronicle.messages.length, chronicle.chatter.length]).toEqual([1_000, 2_400]);
  });

  test("leaves no marks for pacing timers and for events of renewals, but marks events that have a sentence", () => {
    const timeout = (at: number): TraceEntry => ({ at, node: 0, kind: "timeout", timer: "renew" });
    const entries = Array.from({ length: 100 }, (_, i) => [
      timeout(i * 100),
      event(i * 100 + 1, 0, "election", { type: "confirmed", epoch: 1, by: i % 2 === 0 ? "leaseEven" : "leaseOdd" }),
      event(i * 100 + 2, 0, "election", { type: "entered", token: i }),
    ]).flat();
    const chronicle = new Chronicle(clusterOf([0, 0], 10_000), entries);
    expect([...new Set(chronicle.marks.map(({ name }) => name.short))]).toEqual(["entered"]);
    const log = new EventLog();
    log.add(entries, chronicle);
    expect(log.lines.filter(({ text }) => !text.includes("enters"))).toEqual([]);
  });

  test("keeps an earlier burst of a type that later becomes chatter", () => {
    const burst = Array.from({ length: 50 }, (_, i) => send(100 + i, 0, 1, "ping", `burst ${i}`));
    const steady = Array.from({ length: 300 }, (_, i) => send(3_000 + i * 100, 0, 1, "ping", `ping ${i}`));
    const chronicle = new Chronicle(clusterOf([1, 1], 33_000), [...burst, ...steady]);
    expect(chronicle.messages.filter(({ id }) => id.startsWith("burst"))).toHaveLength(50);
    expect(chronicle.chatter.length).toBeGreaterThan(270);
  });

  test("forgets messages older than the retention time, and their ids", () => {
    const chronicle = new Chronicle(clusterOf([1, 1]), [send(10, 0, 1)]);
    chronicle.forget(10 + KEPT_MS);
    expect(chronicle.messages).toEqual([]);
    expect(chronicle.find("0>1@10")).toBeUndefined();
  });
});

describe("lives", () => {
  test("assumes the current state for the past without evidence", () => {
    const chronicle = new Chronicle(clusterOf([1, 1]), []);
    expect(chronicle.lives.get(1)?.stretches()).toEqual([
      { from: -Infinity, to: Infinity, condition: "running", leads: true, role: "leader" },
    ]);
  });

  test("counts a crash that is reported twice once, at the time in the trace", () => {
    const before = clusterOf([1, 1]);
    const chronicle = new Chronicle(before, []);
    chronicle.observe(replaced(before, nodePicture(1, null, "exited"), 2_040), before);
    chronicle.add([{ at: 2_000, node: 1, kind: "crash" }]);
    expect(
      chronicle.lives
        .get(1)
        ?.stretches()
        .map(({ from, condition }) => [from, condition]),
    ).toEqual([
      [-Infinity, "running"],
      [2_000, "gone"],
    ]);
  });

  test("takes the time of a pause from the trace", () => {
    const before = clusterOf([1, 1]);
    const chronicle = new Chronicle(before, []);
    const paused = replaced(before, nodePicture(1, { role: "leader", leader: 1 }, "paused"), 2_040);
    chronicle.observe(paused, before);
    chronicle.add([{ at: 2_000, node: 1, kind: "pause" }]);
    chronicle.observe(replaced(paused, nodePicture(1, { role: "leader", leader: 1 }), 3_060), paused);
    chronicle.add([{ at: 3_000, node: 1, kind: "resume" }]);
    expect(
      chronicle.lives
        .get(1)
        ?.stretches()
        .map(({ from, condition }) => [from, condition]),
    ).toEqual([
      [-Infinity, "running"],
      [2_000, "paused"],
      [3_000, "running"],
    ]);
  });

  test("keeps the state at the cutoff when it forgets", () => {
    const chronicle = new Chronicle(clusterOf([1, 1]), []);
    const life = chronicle.lives.get(0);
    life?.viewed(2_000, { role: "leader", leader: 0 });
    life?.viewed(3_000, { role: "follower", leader: 1 });
    life?.forget(2_500);
    expect(life?.stretches().map(({ from, leads }) => [from, leads])).toEqual([
      [-Infinity, true],
      [3_000, false],
    ]);
  });
  test("shows the lasting states that the protocol's presentation declares", () => {
    const cluster = { ...clusterOf([null, null]), spans: { spans: "leadership", term: "view" } as const };
    const life = new Chronicle(cluster, []).lives.get(0);
    life?.viewed(2_000, { role: "candidate", leader: null, term: 1 });
    life?.viewed(3_000, { role: "leader", leader: 0, term: 1 });
    life?.viewed(4_000, { role: "leader", leader: 0, term: 2 });
    life?.crashed(5_000);
    const states = () => life?.states().map(({ from, to, kind, words }) => [from, to, kind, words]);
    const led = [4_000, 5_000, "leading", "view 2"];
    expect(states()).toEqual([[2_000, 3_000, "electing", "candidate"], [3_000, 4_000, "leading", "view 1"], led]);
    life?.forget(4_500);
    expect(states()).toEqual([[-Infinity, 5_000, "leading", "view 2"]]);
  });
});
