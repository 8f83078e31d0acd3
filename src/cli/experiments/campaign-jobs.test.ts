import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ChunkResult } from "../../experiment/campaign/chunk.ts";
import { type Chunk, chunksOf, parseCampaign, seedsOf } from "../../experiment/campaign/file.ts";
import { CampaignFolder, type Hands } from "./campaign-jobs.ts";
import type { CampaignTask } from "./threads.ts";

const text = JSON.stringify({
  name: "c",
  chunk: 10,
  seeds: { count: 95 },
  experiments: [{ name: "calls", simulate: { protocol: "bully" } }],
});
const campaign = parseCampaign({ file: "c.json", text, scenarios: {} });
const total = chunksOf(campaign).length;

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "coterie-campaign-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Runs three jobs at a time. The higher a job's number, the fewer turns it takes, so later jobs can end first. */
class FakeHands implements Hands {
  readonly #most: typeof Number.POSITIVE_INFINITY;
  readonly count = 3;
  readonly made: number[] = [];
  /** @param most stops after this number of completed jobs */
  constructor(most = Number.POSITIVE_INFINITY) {
    this.#most = most;
  }

  get isStopped(): boolean {
    return this.made.length >= this.#most;
  }

  async ask(task: CampaignTask): Promise<ChunkResult | null> {
    const { chunk } = task as { readonly chunk: Chunk };
    for (let turn = 0; turn < 20 - chunk.chunk; turn++) await Promise.resolve();
    if (this.isStopped) return null;
    this.made.push(chunk.chunk);
    const range = { min: 1, max: 1, sum: 1 };
    return { ...chunk, runs: seedsOf(campaign, chunk).count, digest: 1, size: range, timeMs: null, failures: [] };
  }

  stop(): void {}
  close(): Promise<void> {
    return Promise.resolve();
  }
}

async function work(hands: FakeHands): Promise<readonly ChunkResult[] | null> {
  const queue = new CampaignFolder(campaign, folder, "this one");
  try {
    return await queue.work(
      hands,
      () => hands.isStopped,
      () => {},
    );
  } finally {
    queue.close();
  }
}

const chunksIn = (results: readonly ChunkResult[] | null) => results?.map(({ chunk }) => chunk).sort((a, b) => a - b);
const everyOne = Array.from({ length: total }, (_, chunk) => chunk);

test("does every job once, and a stopped campaign continues where it stopped", async () => {
  const first = new FakeHands(4);
  expect(await work(first)).toBeNull();
  const second = new FakeHands();
  expect(chunksIn(await work(second))).toEqual(everyOne);
  expect([...first.made, ...second.made].sort((a, b) => a - b)).toEqual(everyOne);
  const third = new FakeHands();
  expect(chunksIn(await work(third))).toEqual(everyOne);
  expect(third.made).toEqual([]);
});

test("repeats a job whose line is incomplete or not a result", async () => {
  await work(new FakeHands());
  const file = join(folder, "results.jsonl");
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  const [last = "", other = ""] = [lines.pop(), lines.pop()];
  writeFileSync(file, `${lines.join("\n")}\n${other.replace('"runs":10', '"runs":11')}\n${last.slice(0, 20)}`);
  const hands = new FakeHands();
  expect(chunksIn(await work(hands))).toEqual(everyOne);
  expect(hands.made).toHaveLength(2);
  const again = new FakeHands();
  expect(chunksIn(await work(again))).toEqual(everyOne);
  expect(again.made).toEqual([]);
});

test("uses the first result if a job has two", async () => {
  await work(new FakeHands());
  const file = join(folder, "results.jsonl");
  const [, first = ""] = readFileSync(file, "utf8").split("\n");
  appendFileSync(file, `${first.replace('"digest":1', '"digest":2')}\n`);
  const results = await work(new FakeHands());
  expect(chunksIn(results)).toEqual(everyOne);
  expect(results?.every(({ digest }) => digest === 1)).toBe(true);
});

test("refuses results of another campaign or another release", async () => {
  await work(new FakeHands());
  expect(() => new CampaignFolder(campaign, folder, "that one")).toThrow(
    /a folder of this campaign, because it contains results of another campaign or release.*, got .*: choose another with --out, or delete this one/,
  );
  expect(() => new CampaignFolder(campaign, "/dev/null/x", "this one")).toThrow("a writable folder");
});
