/**
 * Long work on threads of its own, so that this one can show how far it has come and hear Ctrl-C. The first Ctrl-C asks
 * the work to end with what it has; a second one ends the process at once.
 */
import { Worker } from "node:worker_threads";
import { EnvironmentError, InvariantViolation, UsageError } from "../core/errors.ts";

/** What a thread sends. */
export type FromThread<Progress, Answer> =
  | { readonly progress: Progress }
  | { readonly answer: Answer }
  | { readonly error: ThreadError };

/** An error on its way between threads. */
export interface ThreadError {
  readonly name: string;
  readonly code: string;
  readonly message: string;
}

export interface ThreadData<Request> {
  readonly request: Request;
  /** Its first number becomes 1 when the work should end. */
  readonly stop: SharedArrayBuffer;
}

export interface Finished<Answer> {
  readonly answer: Answer;
  /** Somebody pressed Ctrl-C. */
  readonly isStopped: boolean;
}

/** Work on one thread. @param file the compiled module that calls `workInThread`. @throws what the work throws */
export async function workApart<Request, Progress, Answer>(
  file: URL,
  request: Request,
  onProgress: (progress: Progress) => void,
): Promise<Finished<Answer>> {
  const { answer, isStopped } = await workTogether<Request, Progress, Answer>(file, request, 1, ([progress]) =>
    onProgress(progress as Progress),
  );
  return { answer: answer[0] as Answer, isStopped };
}

/**
 * Work that several threads share out among them. All are given the same request, and each has an answer.
 *
 * @param file the compiled module that calls `workInThread`.
 * @param onProgress is told how far each thread is that has said so.
 * @throws what the work throws on any of them, or an EnvironmentError if one of them ends without an answer
 */
export async function workTogether<Request, Progress, Answer>(
  file: URL,
  request: Request,
  threads: number,
  onProgress: (progress: readonly Progress[]) => void,
): Promise<Finished<readonly Answer[]>> {
  const stop = new SharedArrayBuffer(4);
  let isStopped = false;
  const interrupt = (): void => {
    if (isStopped) process.exit(1);
    isStopped = true;
    Atomics.store(new Int32Array(stop), 0, 1);
  };
  for (const signal of SIGNALS) process.on(signal, interrupt);
  const workerData: ThreadData<Request> = { request, stop };
  const workers = Array.from({ length: threads }, () => new Worker(file, { workerData }));
  const latest = new Map<Worker, Progress>();
  const answers = workers.map((worker) =>
    answerOf<Progress, Answer>(worker, (progress) => onProgress([...latest.set(worker, progress).values()])),
  );
  try {
    return { answer: await Promise.all(answers), isStopped };
  } finally {
    for (const signal of SIGNALS) process.off(signal, interrupt);
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

function answerOf<Progress, Answer>(worker: Worker, onProgress: (progress: Progress) => void): Promise<Answer> {
  return new Promise((resolve, reject) => {
    worker.on("message", (message: FromThread<Progress, Answer>) => {
      if ("progress" in message) onProgress(message.progress);
      else if ("answer" in message) resolve(message.answer);
      else reject(errorFrom(message.error));
    });
    worker.on("error", (error: NodeJS.ErrnoException) => reject(outOfMemory(error) ?? error));
    worker.on("exit", (code) => reject(new EnvironmentError("thread-ended", `the search ended with code ${code}`)));
  });
}

function outOfMemory(error: NodeJS.ErrnoException): Error | null {
  if (error.code !== "ERR_WORKER_OUT_OF_MEMORY") return null;
  return new EnvironmentError("out-of-memory", "the search ran out of memory: give it a bound, such as --max-states");
}

/** The error of this class again. */
export function errorFrom({ name, code, message }: ThreadError): Error {
  if (name === "UsageError") return new UsageError(code, message);
  if (name === "InvariantViolation") return new InvariantViolation(code, message);
  return new EnvironmentError(code, message);
}
