/** How long a call of shared state waits, and what its caller is told if it had no answer. */
import { MAX_WAIT_MS } from "../../../runtime/longest-wait.ts";
import type { Platform } from "../../../runtime/platform/platform.ts";
import { type CoordinationCode, CoordinationError } from "../coordination-error.ts";
import { duration, type Rules, signal } from "../known-options.ts";
import { onAbort } from "../on-abort.ts";
import type { CallOptions } from "./state-api.ts";

const DEFAULT_TIMEOUT_MS = 10_000;

export const callRules: Rules<CallOptions> = { timeoutMs: duration, signal };

export interface Call extends CallOptions {
  /** In an error's words, such as `the write of "a" in the map "users"`. */
  readonly what: string;
  /** Whether it may have been done though nobody has said so. */
  readonly changes: boolean;
}

/** Whether somebody waits for it still: what nobody waits for may not be done after what was asked for later. */
export type IsWanted = () => boolean;

/** @param why nothing is answered, as far as this member can tell; empty where it cannot. */
export function withinTime<T>(
  platform: Pick<Platform, "timers">,
  { what, changes, timeoutMs = DEFAULT_TIMEOUT_MS, signal }: Call,
  answer: (isWanted: IsWanted) => Promise<T>,
  why: () => string,
): Promise<T> {
  const { timers } = platform;
  const fail = (code: CoordinationCode, text: string, cause?: unknown): CoordinationError => {
    const known = changes ? "it may have been done, or be done yet" : "nothing was done";
    const message = `${what} ${text}: ${why()}${known}`;
    return new CoordinationError(code, changes ? "uncertain" : "never-sent", message, { cause });
  };
  if (signal?.aborted === true) {
    const text = `${what} was aborted before it began: nothing was done`;
    return Promise.reject(new CoordinationError("request-aborted", "never-sent", text, { cause: signal.reason }));
  }
  return new Promise((resolve, reject) => {
    let isWanted = true;
    const done = (): void => {
      isWanted = false;
      timers.cancel(timer);
      forget();
    };
    const end = (error: unknown): void => {
      done();
      reject(error instanceof Error ? error : new Error(String(error)));
    };
    const timer =
      timeoutMs > MAX_WAIT_MS
        ? null
        : timers.after(timeoutMs, () => end(fail("request-timeout", `was not answered within ${timeoutMs} ms`)));
    const forget = onAbort(signal, () => end(fail("request-aborted", "was aborted", signal?.reason)));
    answer(() => isWanted).then((value) => {
      done();
      resolve(value);
    }, end);
  });
}
