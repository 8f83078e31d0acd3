/**
 * Timers for code that runs in a world. They have the same names as in Node: `setTimeout`, and `sleep` with the
 * signature of `setTimeout` from `node:timers/promises`.
 */
import type { Due } from "./virtual-time.ts";

/** Timers that run in a world's virtual time. */
export interface WorldTimers {
  /** Resolves after `ms`. Rejects with an `AbortError` if the signal is aborted first. */
  readonly sleep: <T = void>(
    ms?: number,
    value?: T,
    options?: { readonly signal?: AbortSignal | undefined },
  ) => Promise<T>;
  /** Calls `run` after `ms`, like Node's function. */
  readonly setTimeout: <A extends unknown[]>(run: (...args: A) => unknown, ms?: number, ...args: A) => WorldTimer;
  /** Cancels a timer. Ignores null, undefined and timers that have already fired. */
  readonly clearTimeout: (timer: WorldTimer | null | undefined) => void;
}

/** A timer started in a world. */
export interface WorldTimer {
  /** Cancels the timer. Has no effect if it has already fired. */
  readonly cancel: () => void;
}

/** The longest delay that Node's timers support. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Returns a delay according to Node's rule: a delay that cannot be represented becomes 1 ms. */
export function timerMs(given: number): number {
  const ms = Number(given);
  return Number.isFinite(ms) && ms <= MAX_TIMER_MS ? ms : 1;
}

/** @param after schedules a function after some milliseconds, according to the world's clock or that machine's */
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
