/**
 * A campaign's jobs and their results, in a file with one line per finished job. A line that cannot be parsed, because
 * a process was killed while writing it, does not count. If a job has two lines, the first one counts.
 */
import { spawn } from "node:child_process";
import { closeSync, fdatasyncSync, mkdirSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { UsageError, unexpected } from "../../core/errors.ts";
import { asChunkResult, type ChunkResult, type RunResult, runChunk } from "../../experiment/campaign/chunk.ts";
import { type Campaign, type CampaignExperiment, chunksOf, type Soak } from "../../experiment/campaign/file.ts";
import { smallestRun } from "../../experiment/campaign/smallest.ts";
import type { CampaignAnswer, CampaignTask, Threads } from "./threads.ts";

/** The workers that execute the runs: threads, or this process itself. */
export type Hands = Pick<Threads<"campaign">, "count" | "ask" | "stop" | "close">;

/** Runs one task. Resolves with null if `mayGoOn` returned false. */
export async function campaignWork(
  campaign: Campaign,
  task: CampaignTask,
  mayGoOn: () => boolean,
): Promise<CampaignAnswer> {
  if ("chunk" in task) return runChunk(campaign, task.chunk, (soak, seed) => runSoak(soak, seed, mayGoOn), mayGoOn);
  const { experiment, seed, what } = task.smallest;
  return smallestRun(campaign.experiments[experiment] as CampaignExperiment, seed, what);
}

/** Creates a worker that runs tasks in this process, one at a time. */
export function handsHere(campaign: Campaign): Hands {
  let isStopped = false;
  return {
    count: 1,
    ask: (task) => campaignWork(campaign, task, () => !isStopped),
    stop() {
      isStopped = true;
    },
    close: () => Promise.resolve(),
  };
}

/** The results of finished jobs, stored in the campaign's folder. */
export class CampaignFolder {
  readonly foundJobs: number;
  readonly #campaign: Campaign;
  readonly #results = new Map<string, ChunkResult>();
  readonly #file: number;

  /**
   * Opens the folder.
   * @param identity a hash of the campaign and the code. Results with a different identity are refused
   * @throws UsageError `bad-folder` if the folder cannot be written to, or contains the results of a different campaign
   */
  constructor(campaign: Campaign, folder: string, identity: string) {
    this.#campaign = campaign;
    const file = join(folder, "results.jsonl");
    try {
      mkdirSync(folder, { recursive: true });
      this.#file = openSync(file, "a+");
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw new UsageError("bad-folder", `${unexpected("--out", "a writable folder", folder)} (${code})`);
    }
    const content = readFileSync(file, "utf8");
    const [first, ...lines] = content.split("\n");
    const header = JSON.stringify({ kind: "campaign-results", version: 1, identity });
    if (content === "") this.#add(header);
    else if (first !== header) {
      const expected = "a folder of this campaign, because it contains results of another campaign or release";
      throw new UsageError(
        "bad-folder",
        `${unexpected("--out", expected, folder)}: choose another with --out, or delete this one`,
      );
    }
    for (const line of lines) this.#take(parsed(line));
    this.foundJobs = this.#results.size;
    if (content !== "" && !content.endsWith("\n")) writeSync(this.#file, "\n"); // Terminate a line that was cut short.
  }

  /**
   * Runs jobs until every job has a result.
   *
   * @param show called with the number of finished jobs
   * @returns one result for each job, or null if the work was stopped
   */
  async work(
    hands: Hands,
    isStopped: () => boolean,
    show: (done: number) => void,
  ): Promise<readonly ChunkResult[] | null> {
    const left = chunksOf(this.#campaign)
      .filter(({ experiment, chunk }) => !this.#results.has(`${experiment}.${chunk}`))
      .values();
    const hand = async (): Promise<void> => {
      for (const next of left) {
        const result = isStopped() ? null : ((await hands.ask({ chunk: next })) as ChunkResult | null);
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

  close(): void {
    closeSync(this.#file);
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

const LOOK_MS = 100;

/**
 * Runs a soak's command once, in a process group that is killed when the command ends.
 *
 * @returns null if it was stopped. A program that cannot be started counts as a failed run.
 */
function runSoak(soak: Soak, seed: number, mayGoOn: () => boolean): Promise<RunResult | null> {
  const withSeed = (text: string): string => text.replaceAll("{seed}", String(seed));
  const [program = "", ...args] = soak.command.map(withSeed);
  const own = Object.fromEntries(Object.entries(soak.env).map(([name, value]) => [name, withSeed(value)]));
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: "ignore", detached: true, env: { ...process.env, ...own } });
    let end: (() => RunResult | null) | null = null;
    const kill = (then: () => RunResult | null): void => {
      end ??= then;
      killGroup(child.pid);
    };
    const look = setInterval(() => mayGoOn() || kill(() => null), LOOK_MS);
    const late = setTimeout(() => kill(() => failed(`not done within ${soak.timeoutMs / 1_000} s`)), soak.timeoutMs);
    const settle = (result: RunResult | null): void => {
      clearInterval(look);
      clearTimeout(late);
      killGroup(child.pid); // Kill its child processes, too.
      resolve(result);
    };
    child.on("error", (error: NodeJS.ErrnoException) => settle(failed(`cannot be started: ${error.code}`)));
    child.on("close", (code, signal) => {
      if (end !== null) settle(end());
      else if (code === 0) settle({ size: 0, timeMs: null, failures: [] });
      else settle(failed(code === null ? `ended by ${signal}` : `exit code ${code}`));
    });
  });
}

const failed = (what: string): RunResult => ({ size: 0, timeMs: null, failures: [what] });

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The process group has already ended.
  }
}
