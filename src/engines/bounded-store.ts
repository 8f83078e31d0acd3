/**
 * A store whose calls are answered or fail within a time limit, regardless of its client library. It remembers why calls
 * failed.
 */
import type { Platform } from "../runtime/platform/platform.ts";
import { type Store, StoreError } from "./store.ts";

/** Why an engine refuses or does not answer: for each kind of call, the last failure since its last success. */
export class LastFailures {
  readonly #clock: Platform["clock"];
  readonly #forMs: number;
  /** In order, the latest last. */
  readonly #failures = new Map<keyof Store, { readonly error: StoreError; readonly at: number }>();

  /** @param forMs how long a failure counts; pending calls are repeated sooner. */
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

/** A host name with several addresses fails with an `AggregateError`, which has no message of its own. */
export function reasonOf({ message, cause }: StoreError, engine: string): string {
  if (cause instanceof AggregateError) return cause.errors.map((each: Error) => each.message).join(", ");
  return message.replace(`${engine}: `, "");
}

export interface Bounds {
  readonly timers: Platform["timers"];
  readonly timeoutMs: number;
  readonly failures: LastFailures;
}

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
