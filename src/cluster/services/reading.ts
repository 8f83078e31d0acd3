/** Delivers values to readers that read at their own pace. Each reader gets the latest value, or a bounded backlog. */

import { type CoordinationError, isOwnEnd } from "./coordination-error.ts";
import { onAbort } from "./on-abort.ts";

/** A source of values with any number of readers. */
export interface Feed<T> {
  publish(item: T): void;
  /** Stops publishing. Readers end once they have read their backlog, or reject if the reason is a failure. */
  close(reason: CoordinationError | null): void;
  /** Whether the feed has readers. */
  readonly isRead: boolean;
  /** Iterates over the values from now on, until one of the signals is aborted. `first` precedes all other values. */
  read(signal: AbortSignal | undefined, first?: T, closed?: AbortSignal): AsyncIterableIterator<T>;
}

/** @param keep returns a reader's backlog with the new item added, oldest first. It must bound the backlog's length */
export function feed<T>(keep: (waiting: readonly T[], item: T) => T[]): Feed<T> {
  const readers = new Set<Reader<T>>();
  let isClosed = false;
  let failure: CoordinationError | null = null;
  return {
    publish(item) {
      for (const reader of readers) reader.take(item);
    },
    close(reason) {
      if (isClosed) return;
      isClosed = true;
      failure = reason === null || isOwnEnd(reason) ? null : reason;
      for (const reader of readers) reader.end(failure);
    },
    get isRead() {
      return readers.size > 0;
    },
    read(signal, first, closed) {
      const signals = [signal, closed];
      const reader = new Reader<T>(keep, signals, () => readers.delete(reader));
      if (first !== undefined) reader.take(first);
      if (signals.some((each) => each?.aborted)) reader.end();
      else if (isClosed) reader.end(failure);
      else readers.add(reader);
      return reader;
    },
  };
}

class Reader<T> implements AsyncIterableIterator<T> {
  readonly #keep: (waiting: readonly T[], item: T) => T[];
  readonly #left: () => void;
  #waiting: T[] = [];
  #isEnded = false;
  readonly #forget: readonly (() => void)[];
  #failure: CoordinationError | null = null;
  /** Pending calls of `next`. */
  #callers: Caller<T>[] = [];

  constructor(
    keep: (waiting: readonly T[], item: T) => T[],
    signals: readonly (AbortSignal | undefined)[],
    left: () => void,
  ) {
    this.#keep = keep;
    this.#left = left;
    this.#forget = signals.map((signal) => onAbort(signal, () => this.end()));
  }

  take(item: T): void {
    if (this.#isEnded) return;
    const caller = this.#callers.shift();
    if (caller === undefined) this.#waiting = this.#keep(this.#waiting, item);
    else caller.resolve({ done: false, value: item });
  }

  /**
   * Ends the reader.
   * @param failure rejects the first call that finds nothing to read
   */
  end(failure: CoordinationError | null = null): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    for (const forget of this.#forget) forget();
    this.#left();
    const callers = this.#callers.splice(0);
    if (failure !== null && callers.length === 0) this.#failure = failure;
    else if (failure !== null) callers.shift()?.reject(failure);
    for (const caller of callers) caller.resolve(DONE);
  }

  next(): Promise<IteratorResult<T>> {
    const [value] = this.#waiting;
    if (this.#waiting.length > 0) {
      this.#waiting.shift();
      return Promise.resolve({ done: false, value: value as T });
    }
    if (this.#failure !== null) {
      const failure = this.#failure;
      this.#failure = null;
      return Promise.reject(failure);
    }
    if (this.#isEnded) return Promise.resolve(DONE);
    return new Promise((resolve, reject) => this.#callers.push({ resolve, reject }));
  }

  return(): Promise<IteratorResult<T>> {
    this.#waiting = [];
    this.#failure = null;
    this.end();
    return Promise.resolve(DONE);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

interface Caller<T> {
  resolve(result: IteratorResult<T>): void;
  reject(error: Error): void;
}

const DONE = { done: true, value: undefined } as const;
