/**
 * The benchmark of the replicated service, with as little as it takes: every row is there, for etcd as well where it is installed;
 * never how fast.
 *
 * @module-tag long
 */
import { expect, test } from "vitest";
import { etcdMissing } from "../../bench/cluster/etcd.ts";
import { type Row, shown, timesBetter } from "../../bench/cluster/figures.ts";
import { coterie } from "./cluster-under-test.ts";

test("coterie bench cluster: writes, reads, locks and fail-over, of both in one run", async () => {
  const { code, stdout, stderr } = await coterie("bench", "cluster", "--quick", "--json");
  expect(code, stderr).toBe(0);
  const { peer, rows } = JSON.parse(stdout) as { peer: string | null; rows: Row[] };
  const isBeside = (await etcdMissing()) === null;
  expect(peer === null).toBe(!isBeside);
  const what = (section: string): string[] => rows.filter((row) => row.section === section).map((row) => row.what);
  expect(what("writes")).toContain("256 in flight, p99");
  expect(what("reads")).toContain("1 in flight");
  expect(what("locks")).toContain("16 in flight, p50");
  expect(what("fail-over")).toEqual([
    "SIGKILL of the leader until the next write",
    "SIGSTOP of the leader until the next write",
  ]);
  for (const row of rows) {
    for (const figures of isBeside ? [row.ours, row.peers] : [row.ours]) {
      expect(figures, row.what).toHaveLength(1);
      expect(figures[0], row.what).toBeGreaterThan(0);
    }
  }
});

test("coterie bench cluster --api etcd: both through etcd's API, by one client", async () => {
  expect(await etcdMissing()).toBeNull();
  const { code, stdout, stderr } = await coterie("bench", "cluster", "--api", "etcd", "--quick", "--json");
  expect(code, stderr).toBe(0);
  const { rows } = JSON.parse(stdout) as { rows: Row[] };
  const sections = new Set(rows.map(({ section }) => section));
  expect([...sections]).toEqual(["writes", "reads", "serializable-reads", "locks", "session-locks"]);
  for (const { ours, peers, what } of rows)
    for (const figure of [...ours, ...peers]) expect(figure, what).toBeGreaterThan(0);
  for (const { ours, peers, what } of rows) expect([ours.length, peers.length], what).toEqual([1, 1]);
});

test("for people: how many times the peer's figure ours is, more a second and fewer milliseconds alike", () => {
  const row = { section: "writes", what: "1 in flight" };
  expect(timesBetter({ ...row, unit: "/s", ours: [30], peers: [10] })).toBe(3);
  expect(timesBetter({ ...row, unit: "ms", ours: [1], peers: [2] })).toBe(2);
  expect(timesBetter({ ...row, unit: "ms", ours: [1], peers: [] })).toBeNull();
  expect(shown({ ...row, unit: "ms", ours: [3, 1, 2], peers: [] })).toEqual([
    "1 in flight, ms",
    "2.00 [1.00–3.00]",
    "–",
    "–",
  ]);
});

test.each([
  ["--only", "some", "some of writes, reads, locks, fail-over, got some"],
  ["--api", "other", "join or etcd, got other"],
  ["--rounds", "0", "a whole number from 1 to 100, got 0"],
  ["--seconds", "0", "above 0 and at most 60, got 0"],
])("refuses %s %s, in one sentence", async (option, value, words) => {
  const { code, stdout, stderr } = await coterie("bench", "cluster", option, value);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toContain(`coterie bench cluster: expected ${option} to be ${words}\n`);
});
