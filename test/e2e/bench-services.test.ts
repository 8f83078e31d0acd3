/**
 * Runs the benchmark of services with a minimal load. Every row must be present and every expected loss must occur, at
 * any speed.
 *
 * @module-tag long
 */
import { expect, test } from "vitest";
import type { Row } from "../../bench/results.ts";
import { coterie } from "./cluster-under-test.ts";

test("coterie bench services --only locks: a rate for one client and for many, in one process and in three", {
  tags: ["larger"],
}, async () => {
  // Long enough for one pair of every client on a busy machine.
  const few = ["--only", "locks", "--quick", "--seconds", "3", "--json"];
  const { code, stdout, stderr } = await coterie("bench", "services", ...few);
  expect(code, stderr).toBe(0);
  const rows = JSON.parse(stdout) as Row[];
  const ways = [
    "one client, at the leader of the log",
    "one client, in another process",
    "16 clients, in another process",
    "16 clients, over three processes",
  ];
  expect(rows.map(({ what }) => what)).toEqual(ways);
  for (const { what, figures } of rows) {
    expect(figures.Coterie, what).toHaveLength(1);
    expect(figures.Coterie?.[0], what).toBeGreaterThan(0);
  }
});

test("coterie bench services --only stalls: a member that is paused for longer than every lease has lost all grants; others follow a crash", async () => {
  const few = ["--only", "stalls", "--timing", "fast", "--stalls", "3000", "--rounds", "1", "--json"];
  const { code, stdout, stderr } = await coterie("bench", "services", ...few);
  expect(code, stderr).toBe(0);
  const rows = JSON.parse(stdout) as Row[];
  const [leadership, lock, place, ...crashes] = rows;
  expect([leadership, lock, place]).toMatchObject([
    { what: "3000 ms: leadership", figures: { Coterie: [0] } },
    { what: "3000 ms: lock", figures: { Coterie: [0] } },
    { what: "3000 ms: place in the view", figures: { Coterie: [0] } },
  ]);
  expect(crashes.map(({ what }) => what)).toEqual([
    "crash: leader",
    "crash: holder of a lock",
    "crash: member of a channel's view",
    "crash: leader of the log, until the next grant",
  ]);
  for (const { what, figures } of crashes) expect(figures.Coterie?.[0], what).toBeGreaterThan(0);
});

test.each([
  ["--only", "some", "some of locks, sends, fail-over, stalls, busy, got some"],
  ["--timing", "slow", "some of fast, default, patient, got slow"],
  ["--rounds", "0", "a whole number from 1 to 100, got 0"],
  ["--seconds", "0", "above 0 and at most 60, got 0"],
])("rejects %s %s in one sentence", async (option, value, words) => {
  const { code, stdout, stderr } = await coterie("bench", "services", option, value);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toContain(`coterie bench services: expected ${option} to be ${words}\n`);
});
