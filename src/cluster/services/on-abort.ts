/**
 * Many calls may wait for one signal. Node warns of a leak if it has more than ten listeners, so one listener serves all of
 * them.
 */

interface Crowd {
  readonly waiting: Set<Waiter>;
  readonly notify: () => void;
}

interface Waiter {
  readonly listener: () => void;
}

const crowds = new WeakMap<AbortSignal, Crowd>();

/** Calls the listener when `signal` is aborted. @returns a function that removes it */
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
    for (const { listener } of waiting) listener(); // A listener that is removed meanwhile is not called.
  };
  const crowd = { waiting, notify };
  crowds.set(signal, crowd);
  signal.addEventListener("abort", notify);
  return crowd;
}

/** Set by the platform: allows many listeners of a signal. Browsers do not count them. */
export const listeners = { allowMany(_signal: AbortSignal): void {} };

/** A controller whose signal callers receive: they may add any number of listeners. */
export function controllerForMany(): AbortController {
  const controller = new AbortController();
  listeners.allowMany(controller.signal);
  return controller;
}
