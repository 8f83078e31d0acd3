/** A store whose calls are answered or fail within a time, whatever its client library does. */
import type { Platform } from "../runtime/platform/platform.ts";
import { type Store, StoreError } from "./store.ts";

export function boundedStore(store: Store, timers: Platform["timers"], timeoutMs: number): Store {
  const within = <T>(answer: Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const timer = timers.after(timeoutMs, () =>
        reject(new StoreError(`${store.name} did not answer within ${timeoutMs} ms`, true)),
      );
      answer.then(resolve, reject).finally(() => timers.cancel(timer));
    });
  return {
    name: store.name,
    maxKeys: store.maxKeys,
    get: (key) => within(store.get(key)),
    range: (range) => within(store.range(range)),
    commit: (checks, writes, change) => within(store.commit(checks, writes, change)),
    changes: (prefix, after) => within(store.changes(prefix, after)),
    revision: () => within(store.revision()),
    openSession: (ttlMs) => within(store.openSession(ttlMs)),
    keepAlive: (session) => within(store.keepAlive(session)),
    endSession: (session) => within(store.endSession(session)),
    living: (sessions) => (sessions.length === 0 ? Promise.resolve(new Set()) : within(store.living(sessions))),
    onHint: (listener) => store.onHint(listener),
    close: () => within(store.close()),
  };
}
