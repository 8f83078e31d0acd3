/**
 * Shares one listener among all callers that wait for the same signal. Node warns of a leak if a signal has more than
 * ten listeners, and many calls may wait for it.
 */

interface Crowd {
  readonly waiting: Set<Waiter>;
  readonly notify: () => void;
}

interface Waiter {
  readonly listener: () => void;
}

const crowds = new WeakMap<AbortSignal, Crowd>();

/**
 * Calls the listener when `signal` is aborted.
 * @returns a function that removes it
 */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (signal === undefined) return () => {};
  const crowd = crowds.get(signal) ?? gather(signal);
  const waiter = { listener };
  crowd.waiting.add(waiter);
  return () => {
    if (!crowd.waiting.delete(waiter) || crowd.waiting.size > 0) return;
    crowds.delete(signal);
    signal.removeEventListener("abort", crowd.notify);
  };
}

function gather(signal: AbortSignal): Crowd {
  const waiting = new Set<Waiter>();
  const notify = (): void => {
    for (const { listener } of waiting) listener(); // A listener that is removed during this loop is not called.
  };
  const crowd = { waiting, notify };
  crowds.set(signal, crowd);
  signal.addEventListener("abort", notify);
  return crowd;
}

/** Allows many listeners on a signal. The platform replaces this function. Browsers have no limit on listeners. */
export const listeners = { allowMany(_signal: AbortSignal): void {} };

/** Returns a controller whose signal is passed to callers, which may add any number of listeners. */
export function controllerForMany(): AbortController {
  const controller = new AbortController();
  listeners.allowMany(controller.signal);
  return controller;
}
