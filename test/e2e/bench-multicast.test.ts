/**
 * Runs the benchmark of channels with a minimal load. All messages must arrive, and members must agree on the order, at
 * any speed.
 *
 * @module-tag long
 */
import { expect, test } from "vitest";
import { MARK_EVERY, type Sequence, sameOrder } from "../../bench/multicast/carriers.ts";
import { coterie } from "./cluster-under-test.ts";

interface Row {
  readonly name: string;
  readonly perSecond: readonly number[];
  readonly lost: number;
  readonly agrees: boolean;
  readonly delayMs: number;
}

const few = ["--processes", "3", "--bytes", "100", "--senders", "all", "--seconds", "0.2", "--rounds", "1"];

test("coterie bench multicast: members deliver all messages, in the same order if that is promised", async () => {
  const { code, stdout, stderr } = await coterie("bench", "multicast", "--order", "fifo,total", ...few, "--json");
  expect(code, stderr).toBe(0);
  const rows = JSON.parse(stdout) as Row[];
  expect(rows.map(({ name }) => name)).toEqual([
    "bare net",
    "bare net in batches",
    "bare dgram",
    ...["fifo", "total"].flatMap((order) => ["tcp", "udp"].map((transport) => `${order} ${transport}`)),
  ]);
  for (const { name, perSecond, lost, agrees, delayMs } of rows) {
    expect(perSecond[0], name).toBeGreaterThan(0);
    expect(delayMs, name).toBeGreaterThan(0);
    expect(agrees, name).toBe(true);
    if (!name.includes("dgram")) expect(lost, name).toBe(0);
  }
});

test("a process with little processor time still sends something, and the age of its messages is measured", async () => {
  const few = ["--order", "fifo", "--processes", "3", "--bytes", "100", "--rounds", "1"];
  const words = [...few, "--seconds", "0.00001", "--json"];
  const { code, stdout, stderr } = await coterie("bench", "multicast", ...words);
  expect(code, stderr).toBe(0);
  for (const { name, perSecond, delayMs } of JSON.parse(stdout) as Row[]) {
    expect(perSecond[0], name).toBeGreaterThan(0);
    expect(delayMs, name).toBeGreaterThan(0);
  }
});

test("members that miss some messages agree only if the others are in the same order", () => {
  const of = (count: number, ...marks: number[]): Sequence => ({ count, marks, order: count });
  const length = 2 * MARK_EVERY;
  expect(sameOrder([of(length, 7, 8), of(length, 7, 8), of(length + 1, 7, 8)])).toBe(true);
  expect(sameOrder([of(length, 7, 8), of(length + 1, 7, 9)])).toBe(false);
  // The marks that both members have are in the same order.
  expect(sameOrder([of(length - 1, 7), of(length + 1, 7, 9)])).toBe(true);
  expect(sameOrder([of(MARK_EVERY - 1), of(length, 7, 8)])).toBe(true);
  expect(sameOrder([of(length, 7, 8), { ...of(length, 7, 8), order: 9 }])).toBe(false);
});

test("for people: a row for each transport, with its rate next to a bare fan-out", async () => {
  const { code, stdout, stderr } = await coterie("bench", "multicast", "--order", "none", ...few);
  expect(code, stderr).toBe(0);
  expect(stdout).toContain("3 processes, payloads of 100 bytes, all send");
  expect(stdout).toContain("delay ms: median, p99");
  expect(stderr).toContain("3 processes, payloads of 100 bytes, all send: bare net, round 0 of 1\n");
  expect(stdout).toMatch(/bare net +\d+ \[\d+–\d+\] +1\.00 \[/);
});

test("--help shows a short run", async () => {
  const { code, stdout } = await coterie("bench", "multicast", "--help");
  expect(code).toBe(0);
  expect(stdout).toContain("  coterie bench multicast --processes 3 --order total --transport tcp\n");
});

test.each([
  ["--order", "some", "some of none, fifo, causal, total, causal-total, got some"],
  ["--processes", "1", "whole numbers from 2 to 32, such as 3,5, got 1"],
  ["--bytes", "8", "whole numbers from 32 to 60000, such as 100,1024, got 8"],
  ["--seconds", "0", "above 0 and at most 60, got 0"],
])("rejects %s %s in one sentence", async (option, value, words) => {
  const { code, stdout, stderr } = await coterie("bench", "multicast", option, value);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toContain(`coterie bench multicast: expected ${option} to be ${words}\n`);
});
