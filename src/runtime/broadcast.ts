/**
 * One writer, any number of listeners. A listener that falls behind loses items and is told how many; the writer never
 * waits and its memory stays bounded.
 */
export interface Broadcast<T> {
  readonly listeners: number;
  publish(item: T): void;
  /** Batches of items from now on, at most one batch per `everyMs`, until `signal` aborts. */
  listen(options: { everyMs: number; signal: AbortSignal }): AsyncGenerator<Batch<T>, void, undefined>;
}

export interface Batch<T> {
  readonly items: readonly T[];
  /** How many items were lost before these because the listener was too slow. */
  readonly dropped: number;
}

export function broadcast<T>(capacity: number): Broadcast<T> {
  const inboxes = new Set<{ items: T[]; dropped: number }>();
  return {
    get listeners() {
      return inboxes.size;
    },
    publish(item) {
      for (const inbox of inboxes) {
        if (inbox.items.length < capacity) inbox.items.push(item);
        else inbox.dropped += 1;
      }
    },
    async *listen({ everyMs, signal }) {
      const inbox = { items: [] as T[], dropped: 0 };
      inboxes.add(inbox);
      try {
        while (!signal.aborted) {
          await pause(everyMs, signal);
          if (inbox.items.length === 0 && inbox.dropped === 0) continue;
          const batch = { items: inbox.items, dropped: inbox.dropped };
          inbox.items = [];
          inbox.dropped = 0;
          yield batch;
        }
      } finally {
        inboxes.delete(inbox);
      }
    },
  };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}
