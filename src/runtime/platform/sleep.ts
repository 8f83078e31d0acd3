import type { Timers } from "./platform.ts";

/** Resolves after `ms`, or when `signal` is aborted. With `ref: false`, waiting does not keep the process alive. */
export function sleep(
  timers: Timers,
  ms: number,
  { ref = true, signal }: { readonly ref?: boolean; readonly signal?: AbortSignal | undefined } = {},
): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      timers.cancel(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = timers.after(ms, done);
    if (!ref) timer.unref();
    signal?.addEventListener("abort", done);
  });
}
