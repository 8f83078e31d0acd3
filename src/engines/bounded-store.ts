/**
 * Wraps a store so that every call is answered or fails within a time limit, regardless of the client library.
 * Remembers why calls failed.
 */
import type { Platform } from "../runtime/platform/platform.ts";
import { type Store, StoreError } from "./store.ts";

/**
 * Why an engine refuses calls or does not answer. Stores the last failure of each kind of call since that kind last
 * succeeded.
 */
export class LastFailures {
  readonly #clock: Platform["clock"];
  readonly #forMs: number;
  /** Failures in order, with the latest one last. */
  readonly #failures = new Map<keyof Store, { readonly error: StoreError; readonly at: number }>();

  /**
   * @param forMs how long a failure is reported. Pending calls are retried sooner than that, which records it again.
   */
  constructor(clock: Platform["clock"], forMs: number) {
    this.#clock = clock;
    this.#forMs = forMs;
  }

  get last(): StoreError | null {
    const last = [...this.#failures.values()].at(-1);
    return last !== undefined && this.#clock.now() - last.at <= this.#forMs ? last.error : null;
  }

  failed(call: keyof Store, error: StoreError): void {
    this.#failures.delete(call);
    this.#failures.set(call, { error, at: this.#clock.now() });
  }

  succeeded(call: keyof Store): void {
    this.#failures.delete(call);
  }
}

/**
 * Returns the reason for a failure. If a host name has several addresses, the failure is an `AggregateError`, which has
 * no message of its own.
 */
export function reasonOf({ message, cause }: StoreError, engine: string): string {
  if (cause instanceof AggregateError) return cause.errors.map((each: Error) => each.message).join(", ");
  return message.replace(`${engine}: `, "");
}

export interface Bounds {
  readonly timers: Platform["timers"];
  readonly timeoutMs: number;
  readonly failures: LastFailures;
}

/** Limits the duration of every call to a store. */
export function boundedStore(store: Store, { timers, timeoutMs, failures }: Bounds): Store {
  const within = <T>(call: keyof Store, answer: Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const fail = (error: Error): void => {
        if (error instanceof StoreError) failures.failed(call, error);
        reject(error);
      };
      const timer = timers.after(timeoutMs, () =>
        fail(new StoreError(`${store.name} did not answer within ${timeoutMs} ms`, true)),
      );
      answer
        .then((found) => {
          failures.succeeded(call);
          resolve(found);
        }, fail)
        .finally(() => timers.cancel(timer));
    });
  return {
    name: store.name,
    maxKeys: store.maxKeys,
    get: (key) => within("get", store.get(key)),
    range: (range) => within("range", store.range(range)),
    commit: (checks, writes, change) => within("commit", store.commit(checks, writes, change)),
    changes: (prefix, after) => within("changes", store.changes(prefix, after)),
    revision: () => within("revision", store.revision()),
    openSession: (ttlMs) => within("openSession", store.openSession(ttlMs)),
    keepAlive: (session) => within("keepAlive", store.keepAlive(session)),
    endSession: (session) => within("endSession", store.endSession(session)),
    living: (sessions) =>
      sessions.length === 0 ? Promise.resolve(new Set()) : within("living", store.living(sessions)),
    onHint: (listener) => store.onHint(listener),
    close: () => within("close", store.close()),
  };
}
