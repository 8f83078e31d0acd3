/**
 * Timers for code that runs in a world, with Node's names: `setTimeout`, and `sleep` with the signature of `setTimeout` in
 * `node:timers/promises`.
 */
import type { Due } from "./virtual-time.ts";

/** Timers in a world's virtual time. */
export interface WorldTimers {
  /** Resolves after `ms`. Rejects with an `AbortError` if its signal is aborted first. */
  readonly sleep: <T = void>(
    ms?: number,
    value?: T,
    options?: { readonly signal?: AbortSignal | undefined },
  ) => Promise<T>;
  readonly setTimeout: <A extends unknown[]>(run: (...args: A) => unknown, ms?: number, ...args: A) => WorldTimer;
  readonly clearTimeout: (timer: WorldTimer | null | undefined) => void;
}

/** A timer that a world has started. */
export interface WorldTimer {
  readonly cancel: () => void;
}

/** The longest delay of Node's timers. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Node's rule: a delay that it cannot represent becomes 1 ms. */
export function timerMs(given: number): number {
  const ms = Number(given);
  return Number.isFinite(ms) && ms <= MAX_TIMER_MS ? ms : 1;
}

/** @param after schedules a function after some milliseconds, by a clock of the world or of one machine. */
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
