/** Values for readers at their own pace: each reader sees the latest, or a bounded backlog of all. */

import { onAbort } from "./on-abort.ts";

/** What readers are told, and that there is nothing more to come. */
export interface Feed<T> {
  publish(item: T): void;
  /** No more will come: readers end once they have read what waits for them. */
  close(): void;
  /** Whether anybody reads. */
  readonly isRead: boolean;
  /** From now on, until one of the signals is aborted; `first` comes before all others. */
  read(signal: AbortSignal | undefined, first?: T, closed?: AbortSignal): AsyncIterableIterator<T>;
}

/**
 * @param keep what waits for a reader, oldest first, once the new item has been added to it: bounded by the writer
 * this function.
 */
export function feed<T>(keep: (waiting: readonly T[], item: T) => T[]): Feed<T> {
  const readers = new Set<Reader<T>>();
  let isClosed = false;
  return {
    publish(item) {
      for (const reader of readers) reader.take(item);
    },
    close() {
      isClosed = true;
      for (const reader of readers) reader.end();
    },
    get isRead() {
      return readers.size > 0;
    },
    read(signal, first, closed) {
      const signals = [signal, closed];
      const reader = new Reader<T>(keep, signals, () => readers.delete(reader));
      if (first !== undefined) reader.take(first);
      if (isClosed || signals.some((each) => each?.aborted)) reader.end();
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
  /** Those who have called `next` and wait. */
  #callers: ((result: IteratorResult<T>) => void)[] = [];

  constructor(
    keep: (waiting: readonly T[], item: T) => T[],
    signals: readonly (AbortSignal | undefined)[],
    left: () => void,
  ) {
    this.#keep = keep;
    this.#left = left;
    this.#forget = signals.map((signal) => onAbort(signal, this.end));
  }

  take(item: T): void {
    if (this.#isEnded) return;
    const caller = this.#callers.shift();
    if (caller === undefined) this.#waiting = this.#keep(this.#waiting, item);
    else caller({ done: false, value: item });
  }

  readonly end = (): void => {
    this.#isEnded = true;
    for (const forget of this.#forget) forget();
    this.#left();
    for (const caller of this.#callers.splice(0)) caller(DONE);
  };

  next(): Promise<IteratorResult<T>> {
    const [value] = this.#waiting;
    if (this.#waiting.length > 0) {
      this.#waiting.shift();
      return Promise.resolve({ done: false, value: value as T });
    }
    if (this.#isEnded) return Promise.resolve(DONE);
    return new Promise((resolve) => this.#callers.push(resolve));
  }

  return(): Promise<IteratorResult<T>> {
    this.#waiting = [];
    this.end();
    return Promise.resolve(DONE);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

const DONE = { done: true, value: undefined } as const;
