/**
 * Runs the benchmark of the checker with a minimal number of turns. Its counts must match the reference models, at any
 * speed.
 *
 * @module-tag long
 */
import { expect, test } from "vitest";
import { cellsOf, timesBetter } from "../../bench/results.ts";
import { coterie } from "../e2e/cluster-under-test.ts";

interface Row {
  readonly system: string;
  readonly size: readonly number[];
  readonly isExact: boolean;
}

test("coterie bench check: states and transitions of all rows but the longest are exact", async () => {
  const { code, stdout, stderr } = await coterie("bench", "check", "--quick", "--rounds", "1", "--json");
  expect(code, stderr).toBe(0);
  const rows = JSON.parse(stdout) as Row[];
  expect(rows.map(({ system, size, isExact }) => [system, size.join(), isExact])).toEqual([
    ["chang-roberts", "8", true],
    ["chang-roberts", "9", true],
    ["chang-roberts", "11", true],
    ["chang-roberts", "12", true],
    ["ricart-agrawala", "3,1", true],
    ["ricart-agrawala", "3,2", true],
  ]);
});

test.each(["check", "sim", "host", "wire", "journal", "multicast", "services", "cluster", "agreement", "super-peers"])(
  "coterie bench %s --help describes its options",
  async (name) => {
    const { code, stdout } = await coterie("bench", name, "--help");
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^Usage: coterie bench ${name} \\[options\\]\n\nOptions:\n {2}--`));
  },
);

test("results: our figure as a multiple of the peer's, for higher rates and for lower delays alike", () => {
  const row = { section: "writes", what: "1 in flight" };
  expect(timesBetter({ ...row, unit: "/s", figures: { Coterie: [30], etcd: [10] } }, "etcd")).toEqual([3]);
  expect(timesBetter({ ...row, unit: "ms", figures: { Coterie: [1], etcd: [2] } }, "etcd")).toEqual([2]);
  expect(timesBetter({ ...row, unit: "ms", figures: { Coterie: [1] } }, "etcd")).toBeNull();
  const writes = { ...row, unit: "ms", figures: { Coterie: [3, 1, 2], etcd: [6, 4, 200] } };
  const survivals = { ...row, what: "lock", unit: "survived", figures: { Coterie: [1, 0, 1] } };
  expect(cellsOf("writes", [writes, survivals])).toEqual([
    ["writes", "Coterie", "etcd", "times"],
    ["1 in flight, ms", "2.00 [1.00–3.00]", "6.00 [4.00–200.00]", "4.00 [2.00–100.00]"],
    ["lock, survived", "2 of 3", "–", "–"],
  ]);
});

test("coterie bench lists the benchmarks, and rejects unknown ones", async () => {
  const { code, stdout } = await coterie("bench");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^check .*SPIN/m);
  const unknown = await coterie("bench", "everything");
  expect(unknown).toMatchObject({ code: 2, stdout: "" });
  expect(unknown.stderr).toBe(
    'coterie: expected the benchmark to be one of check, sim, campaign, host, wire, journal, table, multicast, services, cluster, agreement, studio, super-peers, got "everything"\n',
  );
});
