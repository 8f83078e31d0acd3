/** Checks `coterie up --byzantine`: Byzantine processes among honest ones. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { behaviours } from "../../src/protocols/byzantine.ts";
import { ClusterUnderTest, coterie, endAll, until } from "./cluster-under-test.ts";

afterEach(endAll);
const folder = mkdtempSync(join(tmpdir(), "coterie-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Reads a metric of a member, as the sum over its labels. */
async function metric(admin: string, name: string): Promise<number> {
  const text = await (await fetch(`${admin}/metrics`)).text();
  const values = text.split("\n").flatMap((line) => new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`).exec(line)?.[1] ?? []);
  return values.reduce((sum, value) => sum + Number(value), 0);
}

const MIB = 2 ** 20;

/** Expects honest members to run, to have reported no failure, to answer, and to use no more memory than before. */
async function expectUnharmed(cluster: ClusterUnderTest, liar: number): Promise<void> {
  expect(cluster.events.filter(({ event }) => event === "exited")).toEqual([]);
  for (const { id, admin } of cluster.ready.nodes) {
    if (id === liar) continue;
    expect(await metric(admin, "coterie_queued_bytes")).toBeLessThan(8 * MIB);
    expect(await metric(admin, "nodejs_heap_size_used_bytes")).toBeLessThan(150 * MIB);
  }
}

test("a member that equivocates is named, is not counted, and can be followed in the recording", async () => {
  const file = join(folder, "raft.jsonl");
  const words = ["--protocol", "raft", "--nodes", "4", "--byzantine", "3=equivocate", "--seed", "11"];
  const cluster = await ClusterUnderTest.up(...words, "--record", file);
  expect(cluster.ready).toMatchObject({ seed: 11, nodes: [{ id: 0 }, {}, {}, { id: 3, byzantine: "equivocate" }] });
  expect(cluster.ready.nodes.filter(({ byzantine }) => byzantine !== undefined)).toHaveLength(1);
  await cluster.act({ type: "command", node: 1, command: "client.propose" });
  const steps = () => readFileSync(file, "utf8").match(/"kind":"(?:start|receive|timeout|command)"/g)?.length ?? 0;
  await until("enough entries have been recorded", () => steps() > 100, cluster);
  await expectUnharmed(cluster, 3);
  expect((await cluster.status()).nodes.map(({ byzantine }) => byzantine)).toEqual([
    undefined,
    undefined,
    undefined,
    "equivocate",
  ]);
  for (const { agreed } of cluster.events.flatMap((event) => (event.event === "leader" ? [event] : [])))
    expect(agreed).not.toContain(3);
  const lie = "this member is Byzantine (equivocate: may change one value of a message";
  await until("the member reports that it is Byzantine", () => cluster.stderr.includes(lie), cluster);
  cluster.signal("SIGINT");
  await cluster.finished;
  const { stdout, stderr } = await coterie("trace", file, "--check", "--json");
  const checked = JSON.parse(stdout) as { doubts: unknown[]; steps: number };
  expect(checked.doubts, stderr).toEqual([]);
  expect(checked.steps).toBeGreaterThan(50);
});

/** The honest members must continue: they agree on a leader, or they answer. */
describe("honest processes outlive", () => {
  const protocols = ["byzantine-generals", "raft", "epoch-bully", "multi-paxos", "maekawa-sanders", "view-synchrony"];
  const all = behaviours.flatMap((behaviour, at) =>
    protocols.map((protocol, of) => ({ protocol, behaviour, isOfDiagonal: of === at % protocols.length })),
  );
  // src/cluster/liars.test.ts runs every protocol in one process.
  test.each(all.filter(({ isOfDiagonal }) => isOfDiagonal))("$protocol, $behaviour", { tags: ["long"] }, outlives);
  test.each(all.filter(({ isOfDiagonal }) => !isOfDiagonal))("$protocol, $behaviour", { tags: ["larger"] }, outlives);

  async function outlives({ protocol, behaviour }: (typeof all)[number]): Promise<void> {
    const cluster = await ClusterUnderTest.up("--protocol", protocol, "--nodes", "4", "--byzantine", `1=${behaviour}`);
    await sleep(1_500);
    await expectUnharmed(cluster, 1);
    cluster.kill(3);
    await until("the supervisor detects that member 3 has exited", () =>
      cluster.events.some((event) => event.event === "exited" && event.node === 3),
    );
    const exits = cluster.events.filter(({ event }) => event === "exited");
    expect(exits).toHaveLength(1);
    cluster.signal("SIGINT");
    expect((await cluster.finished).code).toBe(0);
  }
});
