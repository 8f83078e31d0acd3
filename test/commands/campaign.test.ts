/** Checks `coterie campaign`: on its own threads and in this process, stopped, killed, and restarted. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, expect, test } from "vitest";
import { Threads } from "../../src/cli/experiments/threads.ts";
import { Coterie, endAll, until } from "../e2e/cluster-under-test.ts";
import { coterie } from "./run-here.ts";

const CLI = fileURLToPath(new URL("../../dist/cli/coterie.js", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "coterie-campaign-"));
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(endAll);

let written = 0;
function fileOf(campaign: object): string {
  const file = join(folder, `${++written}.json`);
  writeFileSync(file, JSON.stringify(campaign));
  return file;
}

interface Summary {
  readonly seconds: number;
  readonly runs: number;
}
const summaryIn = (text: string): object => {
  const { seconds: _times, ...summary } = JSON.parse(text) as Summary;
  return summary;
};

const mixed = {
  name: "mixed",
  chunk: 20,
  seeds: { from: 1, count: 30 },
  experiments: [
    { name: "calls", simulate: { protocol: "bully", nodes: 3, delay: "1..10" } },
    { name: "walks", walk: { protocol: "bully", steps: 30 } },
    { name: "odd", seeds: { count: 3 }, soak: { command: ["sh", "-c", 'test "$SEED" != 2'], env: { SEED: "{seed}" } } },
  ],
};

test("a failure is named, saved, and found again by the printed command", async () => {
  const file = fileOf(mixed);
  const out = join(folder, "mixed");
  const { code, stdout, stderr } = await coterie("campaign", file, "--out", out);
  expect(code).toBe(1);
  expect(stderr).toBe("");
  expect(stdout).toContain("✓ calls");
  expect(stdout).toContain("exit code 1: 1 run of odd, the smallest with seed 2");
  const [, seed = ""] = /--only walks:(\d+)/.exec(stdout) ?? [];
  const again = await coterie("campaign", file, "--only", `walks:${seed}`, "--out", join(folder, "again"), "--json");
  expect(summaryIn(again.stdout)).toMatchObject({ runs: 1, experiments: [{ failures: [{ seeds: [Number(seed)] }] }] });
  const trace = await coterie("trace", join(out, "walks-1.jsonl"), "--check");
  expect(trace.stdout).toContain("E1 safety");
});

test("finished jobs are not repeated, and it reports that", async () => {
  const file = fileOf({ ...mixed, experiments: mixed.experiments.slice(0, 1) });
  const out = join(folder, "twice");
  expect((await coterie("campaign", file, "--out", out)).stdout).not.toContain("already done");
  const { stdout } = await coterie("campaign", file, "--out", out);
  expect(stdout).toContain(`; 2 of 2 jobs were already done in ${out}\n`);
});

test("a thread that dies fails its job, and the next job has another", async () => {
  const source = { file: "none.json", text: "which no thread can read", scenarios: {} };
  const threads = new Threads("campaign", 1, { source });
  for (const chunk of [0, 1, 2]) await expect(threads.ask({ chunk: { experiment: 0, chunk } })).rejects.toThrow();
  await threads.close();
});

test("several threads, or a killed and restarted campaign, give the same summary as one thread", {
  tags: ["long"],
}, async () => {
  const file = fileOf({ ...mixed, experiments: mixed.experiments.slice(0, 2), seeds: { count: 400 } });
  const alone = await coterie("campaign", file, "--out", join(folder, "alone"), "--json");
  const out = join(folder, "threads");
  const start = () => {
    const child = spawn(process.execPath, [CLI, "campaign", file, "--out", out, "--workers", "2", "--json"]);
    let stdout = "";
    child.stdout.on("data", (data: Buffer) => (stdout += data.toString()));
    const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
    return { child, ended, said: () => stdout };
  };
  const killed = start();
  const results = join(out, "results.jsonl");
  const lines = () => (existsSync(results) ? readFileSync(results, "utf8").split("\n").length - 1 : 0);
  while (lines() < 3 && killed.child.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 5));
  killed.child.kill("SIGKILL");
  await killed.ended;
  const second = start();
  expect(await second.ended).toBe(1);
  expect(summaryIn(second.said())).toEqual(summaryIn(alone.stdout));
});

test("a soak that exceeds its time has failed, and its processes end with it", async () => {
  const command = ["sh", "-c", "sleep 600 & wait"];
  const experiments = [{ name: "slow", seeds: { count: 1 }, soak: { command, timeoutSeconds: 0.2 } }];
  const { stdout } = await coterie("campaign", fileOf({ name: "slow", experiments }), "--out", join(folder, "slow"));
  expect(stdout).toContain("not done within 0.2 s: 1 run of slow");
});

test("Ctrl-C is answered at once, while a job is still running", async () => {
  const begun = join(folder, "begun");
  const command = ["sh", "-c", `touch ${begun}; sleep 600`];
  const experiments = [{ name: "long", seeds: { count: 1 }, soak: { command, timeoutSeconds: 600 } }];
  const run = new Coterie("campaign", fileOf({ name: "long", experiments }), "--out", join(folder, "long"));
  await until("the soak runs", () => existsSync(begun), run);
  run.signal("SIGINT");
  const { code, stderr } = await run.finished;
  expect(code).toBe(1);
  expect(stderr).toContain(
    "coterie: stopping, and waiting for the running jobs; press Ctrl-C again to end them at once\n",
  );
  expect(stderr).toContain("stopped after 0 of 1 jobs");
});

test("an invalid file is rejected", async () => {
  const wrong = await coterie("campaign", fileOf({ name: "c", seeds: { count: 1 }, experiments: [{ name: "e" }] }));
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toContain("one of simulate, walk, scenario, soak");
  expect((await coterie("campaign", join(folder, "none.json"))).stderr).toContain("a readable file");
});
