/**
 * Records a live cluster, checks the recording, replays it up to a point, and continues differently in the simulator.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "vitest";
import type { TraceEntry } from "../../src/trace/entry.ts";
import type { Snapshot } from "../../src/trace/snapshot.ts";
import { ClusterUnderTest, coterie, endAll } from "./cluster-under-test.ts";
import { recorded } from "./recorded.ts";

afterEach(endAll);

const folder = mkdtempSync(join(tmpdir(), "coterie-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface State {
  election: { leader: number | null };
}

async function answer(...words: string[]): Promise<{ code: number | null; answer: Record<string, unknown> }> {
  const { code, stdout, stderr } = await coterie(...words, "--json");
  expect(stdout, stderr).not.toBe("");
  return { code, answer: JSON.parse(stdout) as Record<string, unknown> };
}

async function leadersAt(file: string, point: string): Promise<(number | null | "down")[]> {
  const { answer: output } = await answer("trace", file, "--until", point);
  const { nodes } = output.snapshot as Snapshot<{ state: State }>;
  return nodes.map(({ state }) => (state === null ? "down" : state.election.leader));
}

/** Returns whether node 1 was ever suspected, or node 2 before it was killed. */
function isLateAnywhere(entries: readonly TraceEntry[]): boolean {
  const end = entries.findIndex(({ kind }) => kind === "crash");
  return entries.some((entry, index) => {
    if (entry.kind !== "event") return false;
    const { type = "", node } = (entry.event as { body?: { type: string; node?: number } }).body ?? {};
    return type === "suspected" && (node === 1 || (node === 2 && index < end));
  });
}

test("a failover is recorded; the recording holds, shows every state, and can continue differently", async () => {
  const file = join(folder, "failover.jsonl");
  const cluster = await ClusterUnderTest.up("--nodes", "3", "--record", file);
  await cluster.agreed(2, [0, 1, 2]);
  cluster.kill(0, "SIGSTOP");
  await cluster.event("paused");
  cluster.kill(0, "SIGCONT");
  await cluster.event("resumed");
  await cluster.agreed(2, [0, 1, 2]);
  cluster.kill(2);
  await cluster.agreed(1, [0, 1]);
  // The last milliseconds before a kill are not recorded, so wait until the election has been recorded.
  await recorded(file, 0, 1);
  await recorded(file, 1, 1);
  cluster.signal("SIGINT");
  const { code, stderr } = await cluster.finished;
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/recorded [\d,]+ entries to .*failover/) });

  const entries = readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .slice(1)
    .map((line) => JSON.parse(line) as TraceEntry);
  // The supervisor adds crashes that a process cannot report. The end of the cluster does not count as a crash.
  expect(entries.filter(({ kind }) => kind === "crash").map(({ node }) => node)).toEqual([2]);
  expect(entries.filter(({ kind }) => kind === "pause" || kind === "resume").map(({ node }) => node)).toEqual([0, 0]);

  const checked = await answer("trace", file, "--check");
  expect(checked.answer).toMatchObject({ doubts: [], protocol: "bully", nodes: 3 });
  // If the machine was so busy that a live member was suspected, bully may have had two leaders for a while.
  if (!isLateAnywhere(entries)) expect(checked).toMatchObject({ code: 0, answer: { verdict: "holds" } });

  const ordered = (await coterie("trace", file, "--json")).stdout.trimEnd().split("\n").slice(1);
  const ofTwo = (line: string): boolean => {
    const { node, kind } = JSON.parse(line) as TraceEntry;
    return node === 2 && kind !== "crash";
  };
  const before = ordered.findLastIndex(ofTwo) + 1; // The crash is recorded when the supervisor notices it.
  expect(await leadersAt(file, `#${before}`)).toEqual([2, 2, 2]);
  expect(await leadersAt(file, `#${ordered.length}`)).toEqual([1, 1, "down"]);

  const other = await answer("sim", "--from", file, "--until", `#${before}`, "--crash", "1");
  expect(other).toMatchObject({ code: 0, answer: { outcome: { leader: { 0: 2, 2: 2 } } } });
  const both = await answer("sim", "--from", file, "--until", `#${before}`, "--crash", "1,2");
  expect(both).toMatchObject({ code: 0, answer: { outcome: { leader: { 0: 0 } } } });
});

test("a recording with a hole is unknown, and cannot be continued from there", { tags: ["long"] }, async () => {
  const file = join(folder, "hole.jsonl");
  const cluster = await ClusterUnderTest.up("--nodes", "2", "--record", file);
  await cluster.agreed(1, [0, 1]);
  cluster.signal("SIGINT");
  await cluster.finished;
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  const last = lines.findLastIndex((line) => line.includes('"node":1,'));
  const { at } = JSON.parse(lines[last] as string) as TraceEntry;
  writeFileSync(file, lines.toSpliced(last, 1, JSON.stringify({ at, node: 1, kind: "gap", dropped: 1 })).join("\n"));
  const { code, stdout, stderr } = await coterie("trace", file, "--check");
  expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
  expect(stdout).toContain("the state of node 1 is unknown from entry");
  const { code: refused, stderr: why } = await coterie("sim", "--from", file, "--until", `#${lines.length - 1}`);
  expect(refused).toBe(2);
  expect(why).toContain("of node 1 is unknown from entry");
});

test("a recording of another protocol is a mismatch", async () => {
  const file = join(folder, "other.jsonl");
  await coterie("sim", "bully", "--variant", "extended", "--nodes", "3", "--crash", "2", "--trace", file);
  const [header = "", ...lines] = readFileSync(file, "utf8").split("\n");
  expect((await answer("trace", file, "--check")).answer).toMatchObject({ verdict: "holds", doubts: [] });
  const slower = { ...(JSON.parse(header) as object), options: { ranks: [{ node: 0, rank: 9 }] } };
  writeFileSync(file, [JSON.stringify(slower), ...lines].join("\n"));
  const { code, answer: output } = await answer("trace", file, "--check");
  expect(code).toBe(1);
  expect(output).toMatchObject({
    verdict: "unknown",
    doubts: expect.arrayContaining([expect.objectContaining({ why: "mismatch" })]),
  });
});

test("an existing file is not overwritten without the option", async () => {
  const file = join(folder, "old.jsonl");
  writeFileSync(file, "precious\n");
  const { code, stderr } = await coterie("up", "--nodes", "1", "--port", "0", "--record", file);
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: `coterie: expected --record to name a new file, but ${file} already exists: use a new name, or overwrite it with --force\n`,
  });
  expect(readFileSync(file, "utf8")).toBe("precious\n");
});
