/** Many wait for one signal: Node warns of a leak where more than ten listen to it, so one listens for all of them. */

interface Crowd {
  readonly waiting: Set<Waiter>;
  readonly notify: () => void;
}

interface Waiter {
  readonly listener: () => void;
}

const crowds = new WeakMap<AbortSignal, Crowd>();

/** Calls back when `signal` is aborted, unless what is returned has been called by then. */
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
    for (const { listener } of waiting) listener(); // A listener that leaves meanwhile is not told any more.
  };
  const crowd = { waiting, notify };
  crowds.set(signal, crowd);
  signal.addEventListener("abort", notify);
  return crowd;
}

/** Of the surroundings: how a signal is told that many may listen. Browsers do not count them. */
export const listeners = { allowMany(_signal: AbortSignal): void {} };

/** Its signal is handed out: all that is done under it may listen, and that is no leak. */
export function controllerForMany(): AbortController {
  const controller = new AbortController();
  listeners.allowMany(controller.signal);
  return controller;
}
