/** The threads of one process that make the runs of a campaign, each one job at a time. */
import { Worker } from "node:worker_threads";
import type { ChunkResult } from "../experiment/campaign/chunk.ts";
import type { CampaignSource, Chunk } from "../experiment/campaign/file.ts";
import type { SmallestRun } from "../experiment/campaign/smallest.ts";
import { errorFrom, type ThreadError } from "./interruptible.ts";

/** What a thread is asked for. */
export type CampaignTask =
  | { readonly chunk: Chunk }
  | { readonly smallest: { readonly experiment: number; readonly seed: number; readonly what: string } };

export type CampaignAnswer = ChunkResult | SmallestRun | null;

export interface CampaignThreadData {
  readonly source: CampaignSource;
  /** Its first number becomes 1 when jobs should end. */
  readonly stop: Int32Array;
}

export type FromCampaignThread = { readonly answer: CampaignAnswer } | { readonly error: ThreadError };

/** Who makes the runs: threads, or this process itself. */
export interface Hands {
  /** How many jobs at a time. */
  readonly count: number;
  /** Null once it was stopped. @throws what the work throws */
  chunk(chunk: Chunk): Promise<ChunkResult | null>;
  smallest(experiment: number, seed: number, what: string): Promise<SmallestRun | null>;
  /** Jobs end with what is a whole run, and without a result. */
  stop(): void;
  close(): Promise<void>;
}

export class Threads implements Hands {
  readonly count: number;
  readonly #stop = new Int32Array(new SharedArrayBuffer(4));
  readonly #source: CampaignSource;
  readonly #all = new Set<Worker>();
  readonly #idle: Worker[] = [];
  readonly #waiting: (() => void)[] = [];
  #atWork = 0;

  /** @param source of the campaign, which every thread reads for itself. */
  constructor(source: CampaignSource, count: number) {
    this.count = count;
    this.#source = source;
    for (let n = 0; n < count; n++) this.#idle.push(this.#begun());
  }

  chunk(chunk: Chunk): Promise<ChunkResult | null> {
    return this.#ask({ chunk }) as Promise<ChunkResult | null>;
  }

  smallest(experiment: number, seed: number, what: string): Promise<SmallestRun | null> {
    return this.#ask({ smallest: { experiment, seed, what } }) as Promise<SmallestRun | null>;
  }

  stop(): void {
    Atomics.store(this.#stop, 0, 1);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map((worker) => worker.terminate()));
  }

  async #ask(task: CampaignTask): Promise<CampaignAnswer> {
    while (this.#atWork === this.count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#atWork += 1;
    const worker = this.#idle.pop() ?? this.#begun();
    const answer = answerOf(worker);
    worker.postMessage(task);
    try {
      return await answer;
    } finally {
      this.#atWork -= 1;
      if (this.#all.has(worker)) this.#idle.push(worker);
      this.#waiting.shift()?.();
    }
  }

  /** In place of one that has died, too. */
  #begun(): Worker {
    const workerData: CampaignThreadData = { source: this.#source, stop: this.#stop };
    const worker = new Worker(new URL("./campaign-thread.js", import.meta.url), { workerData });
    this.#all.add(worker);
    const forget = (): void => {
      this.#all.delete(worker);
      const at = this.#idle.indexOf(worker);
      if (at >= 0) this.#idle.splice(at, 1);
    };
    worker.once("exit", forget).on("error", forget); // Who waits for its answer hears of it.
    return worker;
  }
}

function answerOf(worker: Worker): Promise<CampaignAnswer> {
  return new Promise((resolve, reject) => {
    const done = (): void => {
      worker.off("message", hear).off("error", fail).off("exit", end);
    };
    const hear = (message: FromCampaignThread): void => {
      done();
      if ("answer" in message) resolve(message.answer);
      else reject(errorFrom(message.error));
    };
    const fail = (error: NodeJS.ErrnoException): void => {
      done();
      const { name, message, code = "thread-ended" } = error;
      reject(errorFrom({ name, code, message: `a thread of the campaign ended: ${message}` }));
    };
    const end = (): void => fail(new Error("it has stopped"));
    worker.on("message", hear).on("error", fail).on("exit", end);
  });
}
