/**
 * Runs the benchmark of the replicated service with a minimal load. Every row must be present, also for etcd if it is
 * installed, at any speed.
 *
 * @module-tag long
 */
import { expect, test } from "vitest";
import { etcdMissing } from "../../bench/cluster/etcd.ts";
import { redisVersion } from "../../bench/cluster/redis.ts";
import { isZookeeperInstalled } from "../../bench/cluster/zookeeper.ts";
import type { Row } from "../../bench/results.ts";
import { coterie } from "./cluster-under-test.ts";

interface Measured {
  readonly peers: readonly string[];
  readonly rows: readonly Row[];
}

const whatIn = ({ rows }: Measured, section: string): string[] =>
  rows.filter((row) => row.section === section).map((row) => row.what);

/** Expects one figure above 0 for each system that has this row. */
function isMeasured({ peers, rows }: Measured, has: (peer: string, row: Row) => boolean): void {
  for (const row of rows) {
    const systems = ["Coterie", ...peers.filter((peer) => has(peer, row))];
    expect(Object.keys(row.figures), row.what).toEqual(systems);
    for (const figures of Object.values(row.figures)) expect(figures, row.what).toEqual([expect.any(Number)]);
    for (const [figure] of Object.values(row.figures)) expect(figure, row.what).toBeGreaterThan(0);
  }
}

test("coterie bench cluster: writes, reads, locks, watches and fail-over, all in one run", async () => {
  expect([await etcdMissing(), isZookeeperInstalled(), (await redisVersion()) !== null]).toEqual([null, true, true]);
  const { code, stdout, stderr } = await coterie("bench", "cluster", "--quick", "--json");
  expect(code, stderr).toBe(0);
  const measured = JSON.parse(stdout) as Measured;
  expect(measured.peers).toEqual([
    expect.stringMatching(/^etcd \d+\.\d+\.\d+$/),
    expect.stringMatching(/^ZooKeeper \d+\.\d+\.\d+$/),
    expect.stringMatching(/^Redis \d+\.\d+\.\d+, one server$/),
  ]);
  expect(whatIn(measured, "writes")).toContain("256 in flight, p99");
  expect(whatIn(measured, "reads")).toContain("1 in flight");
  expect(whatIn(measured, "locks")).toContain("16 in flight, p50");
  expect(whatIn(measured, "watches")).toContain("from a write to a watcher of another member, p50");
  expect(whatIn(measured, "fail-over")).toEqual([
    "SIGKILL of the leader until the next write",
    "SIGSTOP of the leader until the next write",
  ]);
  isMeasured(measured, (peer, { section }) => !peer.startsWith("Redis") || !["watches", "fail-over"].includes(section));
});

test("coterie bench cluster --api etcd: both through etcd's API, by one client", { tags: ["larger"] }, async () => {
  expect(await etcdMissing()).toBeNull();
  const { code, stdout, stderr } = await coterie("bench", "cluster", "--api", "etcd", "--quick", "--json");
  expect(code, stderr).toBe(0);
  const measured = JSON.parse(stdout) as Measured;
  const sections = new Set(measured.rows.map(({ section }) => section));
  expect([...sections]).toEqual(["writes", "reads", "serializable-reads", "locks", "session-locks", "watches"]);
  isMeasured(measured, () => true);
});

test.each([
  ["--only", "some", "some of writes, reads, locks, watches, fail-over, got some"],
  ["--peers", "some", "some of etcd, zookeeper, redis, or none, got some"],
  ["--api", "other", "join or etcd, got other"],
  ["--rounds", "0", "a whole number from 1 to 100, got 0"],
  ["--seconds", "0", "above 0 and at most 60, got 0"],
])("rejects %s %s in one sentence", async (option, value, words) => {
  const { code, stdout, stderr } = await coterie("bench", "cluster", option, value);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toContain(`coterie bench cluster: expected ${option} to be ${words}\n`);
});
