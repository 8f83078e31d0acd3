/** Timers for code that runs in a world, with the words of Node's: `setTimeout`, and `sleep` as `node:timers/promises` has it. */
import type { Due } from "./virtual-time.ts";

export interface WorldTimers {
  /** As `setTimeout` of `node:timers/promises`: rejects with an `AbortError` if its signal is aborted first. */
  readonly sleep: <T = void>(
    ms?: number,
    value?: T,
    options?: { readonly signal?: AbortSignal | undefined },
  ) => Promise<T>;
  readonly setTimeout: <A extends unknown[]>(run: (...args: A) => unknown, ms?: number, ...args: A) => WorldTimer;
  readonly clearTimeout: (timer: WorldTimer | null | undefined) => void;
}

export interface WorldTimer {
  readonly cancel: () => void;
}

/** The longest that Node counts. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** As Node has it: a time that it cannot count is 1 ms. */
export function timerMs(given: number): number {
  const ms = Number(given);
  return Number.isFinite(ms) && ms <= MAX_TIMER_MS ? ms : 1;
}

/** @param after does something after so many milliseconds, on a clock of the world or of one machine. */
export function worldTimers(after: (ms: number, run: () => void) => Due): WorldTimers {
  return {
    sleep: <T>(ms = 0, value?: T, { signal }: { readonly signal?: AbortSignal | undefined } = {}) =>
      new Promise<T>((resolve, reject) => {
        if (signal?.aborted) return reject(abortError(signal));
        const abort = (): void => {
          due.cancel();
          reject(abortError(signal as AbortSignal));
        };
        const due = after(ms, () => {
          signal?.removeEventListener("abort", abort);
          resolve(value as T);
        });
        signal?.addEventListener("abort", abort);
      }),
    setTimeout(run, ms = 0, ...args) {
      const due = after(ms, () => void run(...args));
      return { cancel: () => due.cancel() };
    },
    clearTimeout: (timer) => timer?.cancel(),
  };
}

const abortError = ({ reason }: AbortSignal): Error =>
  Object.assign(new Error("The operation was aborted", { cause: reason }), { name: "AbortError", code: "ABORT_ERR" });
