/**
 * Runs the benchmark of PBFT and Raft with a minimal load. Every row must be present for both, at any speed.
 *
 * @module-tag long
 */
import { expect, test } from "vitest";
import type { Row } from "../../bench/results.ts";
import { coterie } from "./cluster-under-test.ts";

interface Printed {
  readonly rows: readonly Row[];
  readonly signatures: { signUs: number; verifyUs: number; counts: readonly object[] };
}

test("coterie bench agreement: commands per second, delay and cost of signatures, for both in one run", async () => {
  const { code, stdout, stderr } = await coterie("bench", "agreement", "--nodes", "4", "--quick", "--json");
  expect(code, stderr).toBe(0);
  const { rows, signatures } = JSON.parse(stdout) as Printed;
  expect(rows.map(({ what }) => what)).toEqual([
    "4 clients",
    "4 clients, p50",
    "1 client, p50",
    "1 client, p99",
    "leader killed",
  ]);
  for (const { what, figures } of rows)
    for (const system of ["pbft", "raft"]) {
      expect(figures[system], what).toHaveLength(1);
      expect(figures[system]?.[0], what).toBeGreaterThan(0);
    }
  expect(Math.min(signatures.signUs, signatures.verifyUs)).toBeGreaterThan(0);
  // One request, one pre-prepare, N − 1 prepares and N commits.
  expect(signatures.counts).toEqual([{ nodes: 4, signed: 9, verified: 20 }]);
});

test("rejects an impossible size in one sentence", async () => {
  const { code, stdout, stderr } = await coterie("bench", "agreement", "--nodes", "0");
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toContain(
    "coterie bench agreement: expected --nodes to be whole numbers from 1 to 16, such as 4,7, got 0\n",
  );
});
