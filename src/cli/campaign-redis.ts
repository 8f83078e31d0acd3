/**
 * The jobs of a campaign in a queue of BullMQ, on Redis: any number of processes, on any machines, take them and see all results.
 * A job carries its place in the campaign and nothing else: what is run, each worker reads in its own copy of the file. The lock of
 * a worker that dies runs out, and its job is taken again; the queue refuses what a worker says that has lost its lock.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { EnvironmentError, UsageError, unexpected } from "../core/errors.ts";
import { asChunkResult, type ChunkResult, isChunkOf } from "../experiment/campaign/chunk.ts";
import { type Campaign, type Chunk, chunksOf } from "../experiment/campaign/file.ts";
import { optionalPackage } from "../runtime/optional-package.ts";
import type { CampaignQueue, Show } from "./campaign-queue.ts";
import type { Hands } from "./campaign-threads.ts";

/** What is used of `bullmq`. */
interface Library {
  readonly Queue: new (name: string, options: object) => Queue;
  readonly Worker: new (
    name: string,
    work: (job: Job, token: string) => Promise<unknown>,
    options: object,
  ) => Closable & { isRunning(): boolean };
  readonly WaitingError: new () => Error;
}
interface Closable {
  on(event: "error", listener: (error: Error) => void): unknown;
  /** Waits for Redis, as long as it is connected to anew. */
  close(): Promise<unknown>;
}
interface Queue extends Closable {
  addBulk(jobs: readonly { name: string; data: Chunk; opts: object }[]): Promise<unknown>;
  getJobCounts(): Promise<Readonly<Record<string, number>>>;
  getCompleted(from: number, to: number): Promise<readonly Job[]>;
  getFailed(from: number, to: number): Promise<readonly Job[]>;
  waitUntilReady(): Promise<unknown>;
}
interface Job {
  readonly data: Chunk;
  readonly returnvalue: unknown;
  readonly failedReason?: string;
  moveToWait(token: string): Promise<unknown>;
  retry(): Promise<unknown>;
}

/** A worker that has not renewed its lock for so long has died. It renews it on a thread that does nothing else. */
const LOCK_MS = 10_000;
const LOOK_FOR_DEAD_MS = 2_000;
/** A job that has ended so many workers is not given to another. */
const MAX_DEATHS = 10;
const LOOK_MS = 200;
const CONNECT_MS = 10_000;
/** A Redis that says nothing for so long is said to be away. */
const SILENT_MS = 2_000;
const AGAIN_MS = 500;
/** What is at work goes back to the queue within it, or when its lock runs out. */
const CLOSE_MS = 3_000;
const AT_ONCE = 1_000;
/** Loaded where it is used: most have no use for it. */
const LIBRARY: string = "bullmq";

export class CampaignOnRedis implements CampaignQueue {
  foundJobs = 0;
  readonly #campaign: Campaign;
  readonly #name: string;
  readonly #library: Library;
  readonly #connection: object;
  readonly #queue: Queue;
  /** A Redis that is away is not waited for any more. */
  #isLeft = false;

  private constructor(campaign: Campaign, name: string, library: Library, url: string) {
    this.#campaign = campaign;
    this.#name = name;
    this.#library = library;
    const retryStrategy = (): number | null => (this.#isLeft ? null : AGAIN_MS);
    this.#connection = { url, maxRetriesPerRequest: null, retryStrategy };
    this.#queue = new library.Queue(name, { connection: this.#connection });
    this.#queue.on("error", () => {}); // It connects again.
  }

  /**
   * @param identity of the campaign and of what runs it: workers of another have another queue.
   * @throws UsageError `no-library` without the package `bullmq`; EnvironmentError `unreachable` without Redis
   */
  static async open(campaign: Campaign, url: string, identity: string): Promise<CampaignOnRedis> {
    if (!/^rediss?:\/\/\S+$/.test(url))
      throw new UsageError("bad-argument", unexpected("--redis", "such as redis://127.0.0.1:6379", url));
    const library = await loaded();
    const opened = new CampaignOnRedis(campaign, `campaign-${campaign.name}-${identity}`, library, url);
    if (
      (await soon(
        opened.#queue.waitUntilReady().then(() => true),
        CONNECT_MS,
      )) === true
    )
      return opened;
    await opened.close();
    throw new EnvironmentError("unreachable", `${unexpected("--redis", "the address of a Redis that answers", url)}`);
  }

  async work(hands: Hands, isStopped: () => boolean, show: Show): Promise<readonly ChunkResult[] | null> {
    const total = chunksOf(this.#campaign).length;
    for (const job of await this.#queue.getFailed(0, -1)) await retry(job);
    const worker = new this.#library.Worker(this.#name, (job, token) => this.#carryOut(job, token, hands), {
      connection: this.#connection,
      concurrency: hands.count,
      lockDuration: LOCK_MS,
      stalledInterval: LOOK_FOR_DEAD_MS,
      maxStalledCount: MAX_DEATHS,
    });
    worker.on("error", () => {}); // It connects again, or somebody else has the job now.
    try {
      let known: number | null = null;
      for (;;) {
        const counts = await this.#counts(isStopped, () => show(known ?? 0, "for Redis, which does not answer"));
        if (counts === null) return null;
        const { completed = 0, failed = 0 } = counts;
        if (known === null) this.foundJobs = completed;
        known = completed;
        show(completed);
        if (failed > 0) throw await this.#failure();
        if (completed >= total) return await this.#results(total);
        // At first, and where Redis has forgotten some: a job that is known is not added again.
        if (Object.values(counts).reduce((sum, count) => sum + count, 0) < total) await this.#addAll();
        await sleep(LOOK_MS);
      }
    } finally {
      hands.stop(); // What is still at work goes back to the queue.
      await this.#closed(worker);
    }
  }

  close(): Promise<void> {
    return this.#closed(this.#queue);
  }

  /** In order, or without Redis if it does not answer. */
  async #closed(closable: Closable): Promise<void> {
    const closing = closable.close().then(
      () => true,
      () => true, // What was asked of a Redis that is left.
    );
    if ((await soon(closing, this.#isLeft ? 0 : CLOSE_MS)) === true) return;
    this.#isLeft = true;
    await soon(closing, CLOSE_MS);
  }

  /** How many jobs are in which state; null once it was stopped, whether Redis answers or not. */
  async #counts(isStopped: () => boolean, away: () => void): Promise<Readonly<Record<string, number>> | null> {
    const asked = this.#queue.getJobCounts();
    for (let waitedMs = 0; ; waitedMs += LOOK_MS) {
      const counts = await soon(asked, LOOK_MS);
      if (isStopped()) return null;
      if (counts !== null) return counts;
      if (waitedMs >= SILENT_MS) away();
    }
  }

  async #carryOut(job: Job, token: string, hands: Hands): Promise<ChunkResult> {
    const { experiment, chunk } = job.data;
    if (!isChunkOf(this.#campaign, { experiment, chunk })) throw new Error("there is no such job in this campaign");
    const result = await hands.chunk({ experiment, chunk });
    if (result !== null) return result;
    await job.moveToWait(token);
    throw new this.#library.WaitingError();
  }

  async #addAll(): Promise<void> {
    const jobs = chunksOf(this.#campaign).map(({ experiment, chunk }) => ({
      name: "chunk",
      data: { experiment, chunk },
      opts: { jobId: `${experiment}-${chunk}`, removeOnComplete: false, removeOnFail: false },
    }));
    for (let at = 0; at < jobs.length; at += AT_ONCE) await this.#queue.addBulk(jobs.slice(at, at + AT_ONCE));
  }

  async #results(total: number): Promise<readonly ChunkResult[]> {
    const results: ChunkResult[] = [];
    for (let at = 0; at < total; at += AT_ONCE) {
      for (const { returnvalue } of await this.#queue.getCompleted(at, at + AT_ONCE - 1)) {
        const result = asChunkResult(this.#campaign, returnvalue);
        if (result === null) throw new EnvironmentError("bad-result", "expected results of this campaign in the queue");
        results.push(result);
      }
    }
    return results;
  }

  async #failure(): Promise<EnvironmentError> {
    const [job] = await this.#queue.getFailed(0, 0);
    const where = `job ${job?.data.experiment}-${job?.data.chunk}`;
    return new EnvironmentError("job-failed", `${where} cannot be done: ${job?.failedReason}; start again to retry it`);
  }
}

/** @returns null if it has not come within that time */
async function soon<T>(promise: Promise<T>, ms: number): Promise<T | null> {
  const late = new AbortController();
  try {
    return await Promise.race([promise, sleep(ms, null, { signal: late.signal })]);
  } finally {
    late.abort();
  }
}

/** Several that begin again at a time find the same jobs: each is given back once. */
async function retry(job: Job): Promise<void> {
  try {
    await job.retry();
  } catch (error) {
    if (!/not in the failed state/.test((error as Error).message)) throw error;
  }
}

const loaded = (): Promise<Library> =>
  optionalPackage(["bullmq", "ioredis"], "--redis uses", () => import(LIBRARY) as Promise<Library>);
