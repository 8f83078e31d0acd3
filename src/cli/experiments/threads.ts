/**
 * Runs long work on worker threads, so that this thread can show progress and handle Ctrl-C. The first Ctrl-C stops the
 * work, which then returns the results it has so far. A second one ends the process immediately.
 */
import { setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";
import { EnvironmentError, InvariantViolation, UsageError } from "../../core/errors.ts";
import type { ChunkResult } from "../../experiment/campaign/chunk.ts";
import type { CampaignSource, Chunk } from "../../experiment/campaign/file.ts";
import type { SmallestRun } from "../../experiment/campaign/smallest.ts";
import type { CheckAnswer, CheckProgress, CheckTask } from "../../experiment/explore.ts";
import type { HistoryAnswer, HistoryRequest } from "../../history/answer.ts";
import { packageFile } from "../../runtime/package-files.ts";

/** The kinds of work that `worker.ts` can do, each with its task, progress and answer. */
export interface Work {
  readonly check: { readonly task: CheckTask; readonly progress: CheckProgress; readonly answer: CheckAnswer };
  readonly history: { readonly task: HistorySearch; readonly progress: null; readonly answer: HistoryAnswer };
  readonly campaign: { readonly task: CampaignTask; readonly progress: never; readonly answer: CampaignAnswer };
}

/** A history to check. */
export interface HistorySearch extends HistoryRequest {
  /** The time limit. Null: none. */
  readonly timeLimitMs: number | null;
}

/** A campaign's job, or the search for the smallest run with a failure. */
export type CampaignTask =
  | { readonly chunk: Chunk }
  | { readonly smallest: { readonly experiment: number; readonly seed: number; readonly what: string } };
/** The result of a task. Null if the task was stopped. */
export type CampaignAnswer = ChunkResult | SmallestRun | null;

/** An error in serialized form, for sending between threads. */
export interface ThreadError {
  readonly name: string;
  readonly code: string;
  readonly message: string;
}

/** A message from a worker thread. */
export type FromWorker<Progress, Answer> =
  | { readonly progress: Progress }
  | { readonly answer: Answer }
  | { readonly error: ThreadError };

/** The data that a worker thread starts with. */
export interface WorkerData {
  readonly kind: keyof Work;
  /** Shared memory. Its first number is set to 1 when the work should end. */
  readonly stop: Int32Array;
  /** The campaign. Every thread parses it for itself. */
  readonly source?: CampaignSource;
}

const WORKER = packageFile("dist/cli/experiments/worker.js");

/**
 * A pool of threads. Each thread runs one task at a time. If a thread dies, its task fails, and a new thread is started
 * for the next task.
 */
export class Threads<K extends keyof Work> {
  readonly #stop = new Int32Array(new SharedArrayBuffer(4));
  readonly #data: WorkerData;
  readonly #file: URL | string;
  readonly #all = new Set<Worker>();
  readonly #idle: Worker[] = [];
  readonly #waiting: (() => void)[] = [];
  #busy = 0;

  /** @param file a module to use instead of `worker.ts`, for tests */
  constructor(
    kind: K,
    readonly count: number,
    { source, file = WORKER }: { readonly source?: CampaignSource; readonly file?: URL | string } = {},
  ) {
    this.#data = { kind, stop: this.#stop, ...(source && { source }) };
    this.#file = file;
    for (let n = 0; n < count; n++) this.#idle.push(this.#started());
  }

  /**
   * Runs a task on an idle thread.
   * @throws the error that the work throws, or an EnvironmentError if the thread ends without an answer
   */
  async ask(
    task: Work[K]["task"],
    onProgress: (progress: Work[K]["progress"]) => void = () => {},
  ): Promise<Work[K]["answer"]> {
    while (this.#busy === this.count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#busy += 1;
    const worker = this.#idle.pop() ?? this.#started();
    const answer = answerOf<Work[K]["progress"], Work[K]["answer"]>(worker, onProgress);
    worker.postMessage(task);
    try {
      return await answer;
    } finally {
      this.#busy -= 1;
      if (this.#all.has(worker)) this.#idle.push(worker);
      this.#waiting.shift()?.();
    }
  }

  /** Stops the work, which then returns the results it has so far. */
  stop(): void {
    Atomics.store(this.#stop, 0, 1);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map((worker) => worker.terminate()));
  }

  #started(): Worker {
    const worker = new Worker(this.#file, { workerData: this.#data });
    this.#all.add(worker);
    const forget = (): void => {
      this.#all.delete(worker);
      const at = this.#idle.indexOf(worker);
      if (at >= 0) this.#idle.splice(at, 1);
    };
    worker.once("exit", forget).on("error", forget); // `answerOf` rejects the worker's task.
    return worker;
  }
}

function answerOf<Progress, Answer>(worker: Worker, onProgress: (progress: Progress) => void): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const done = (): void => {
      worker.off("message", receive).off("error", fail).off("exit", end);
    };
    const receive = (message: FromWorker<Progress, Answer>): void => {
      if ("progress" in message) return onProgress(message.progress);
      done();
      if ("answer" in message) resolve(message.answer);
      else reject(errorFrom(message.error));
    };
    const fail = (error: NodeJS.ErrnoException): void => {
      done();
      const { name, message, code = "thread-ended" } = error;
      const isMemory = code === "ERR_WORKER_OUT_OF_MEMORY";
      const text = "the search ran out of memory: set a bound, such as --max-states";
      reject(isMemory ? new EnvironmentError("out-of-memory", text) : errorFrom({ name, code, message }));
    };
    const end = (code: number): void => fail(new Error(`a thread ended with code ${code}`));
    worker.on("message", receive).on("error", fail).on("exit", end);
  });
}

/** Restores an error with its original class. */
function errorFrom({ name, code, message }: ThreadError): Error {
  if (name === "UsageError") return new UsageError(code, message);
  if (name === "InvariantViolation") return new InvariantViolation(code, message);
  return new EnvironmentError(code, message);
}

/**
 * Runs a task on several threads that share the work. Ctrl-C stops them.
 *
 * @param onProgress receives the latest progress of each thread that has reported any
 * @returns the answer from each thread
 */
export async function workTogether<K extends keyof Work>(
  threads: Threads<K>,
  task: Work[K]["task"],
  onProgress: (progress: readonly Work[K]["progress"][]) => void,
): Promise<readonly Work[K]["answer"][]> {
  let isStopped = false;
  const interrupt = (): void => {
    if (isStopped) process.exit(1);
    isStopped = true;
    threads.stop();
  };
  for (const signal of SIGNALS) process.on(signal, interrupt);
  const latest = new Map<number, Work[K]["progress"]>();
  const answers = Array.from({ length: threads.count }, (_, n) =>
    threads.ask(task, (progress) => onProgress([...latest.set(n, progress).values()])),
  );
  try {
    return await Promise.all(answers);
  } finally {
    for (const signal of SIGNALS) process.off(signal, interrupt);
    await threads.close();
  }
}

/** The signals that end a command. */
export const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/**
 * Turns off pretenuring on a thread that executes many short runs. Otherwise V8 allocates their objects in the old
 * generation, and garbage collection takes longer than the runs themselves.
 */
export const makeAllYoung = (): void => setFlagsFromString("--no-allocation-site-pretenuring");
