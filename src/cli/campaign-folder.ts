/**
 * The results of a campaign in a folder: a file to which a line is added for each job that is done. A line that cannot be read, as
 * of a process that was killed while it wrote, is a job that is not done; of two lines for one job the first counts.
 */
import { closeSync, fdatasyncSync, mkdirSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { UsageError, unexpected } from "../core/errors.ts";
import { asChunkResult, type ChunkResult } from "../experiment/campaign/chunk.ts";
import { type Campaign, chunksOf } from "../experiment/campaign/file.ts";
import type { CampaignQueue, Show } from "./campaign-queue.ts";
import type { Hands } from "./campaign-threads.ts";

export class CampaignFolder implements CampaignQueue {
  readonly foundJobs: number;
  readonly #campaign: Campaign;
  readonly #results = new Map<string, ChunkResult>();
  readonly #file: number;

  /**
   * @param identity of the campaign and of what runs it: results of another are refused.
   * @throws UsageError `bad-folder` where the folder cannot be written, or has the results of another campaign
   */
  constructor(campaign: Campaign, folder: string, identity: string) {
    this.#campaign = campaign;
    const file = join(folder, "results.jsonl");
    try {
      mkdirSync(folder, { recursive: true });
      this.#file = openSync(file, "a+");
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw new UsageError("bad-folder", `${unexpected("--out", "a folder that can be written", folder)} (${code})`);
    }
    const content = readFileSync(file, "utf8");
    const [first, ...lines] = content.split("\n");
    const header = JSON.stringify({ kind: "campaign-results", version: 1, identity });
    if (content === "") this.#add(header);
    else if (first !== header) {
      const expected = "a folder for this campaign: in this one are results of another, or of another release";
      throw new UsageError(
        "bad-folder",
        `${unexpected("--out", expected, folder)}: name another with --out, or delete this one`,
      );
    }
    for (const line of lines) this.#take(parsed(line));
    this.foundJobs = this.#results.size;
    if (content !== "" && !content.endsWith("\n")) writeSync(this.#file, "\n"); // Of a line that was cut short.
  }

  async work(hands: Hands, isStopped: () => boolean, show: Show): Promise<readonly ChunkResult[] | null> {
    const left = chunksOf(this.#campaign)
      .filter(({ experiment, chunk }) => !this.#results.has(`${experiment}.${chunk}`))
      .values();
    const hand = async (): Promise<void> => {
      for (const next of left) {
        const result = isStopped() ? null : await hands.chunk(next);
        if (result === null) return;
        this.#add(JSON.stringify(result));
        this.#take(result);
        show(this.#results.size);
      }
    };
    show(this.#results.size);
    await Promise.all(Array.from({ length: hands.count }, hand));
    return isStopped() ? null : [...this.#results.values()];
  }

  close(): Promise<void> {
    closeSync(this.#file);
    return Promise.resolve();
  }

  #take(value: unknown): void {
    const result = asChunkResult(this.#campaign, value);
    const key = `${result?.experiment}.${result?.chunk}`;
    if (result !== null && !this.#results.has(key)) this.#results.set(key, result);
  }

  #add(line: string): void {
    writeSync(this.#file, `${line}\n`);
    fdatasyncSync(this.#file);
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
