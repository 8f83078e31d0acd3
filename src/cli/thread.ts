/** The other side of `workApart`: what runs on the thread. */
import { parentPort, workerData } from "node:worker_threads";
import type { FromThread, ThreadData } from "./interruptible.ts";

const TELL_EVERY_MS = 100;

/**
 * Runs `work` on the request that this thread was started with. `work` calls `mayGoOn` now and then with how far it has
 * come, and ends with what it has once that is false.
 */
export function workInThread<Request, Progress, Answer>(
  work: (request: Request, mayGoOn: (progress: Progress) => boolean) => Answer,
): void {
  const { request, stop } = workerData as ThreadData<Request>;
  const flag = new Int32Array(stop);
  const tell = (message: FromThread<Progress, Answer>): void => parentPort?.postMessage(message);
  let due = 0;
  const mayGoOn = (progress: Progress): boolean => {
    const now = Date.now();
    if (now >= due) {
      due = now + TELL_EVERY_MS;
      tell({ progress });
    }
    return Atomics.load(flag, 0) === 0;
  };
  try {
    tell({ answer: work(request, mayGoOn) });
  } catch (error) {
    const { name, message, code = "failed" } = error as Error & { code?: string };
    tell({ error: { name, code, message } });
  }
}
