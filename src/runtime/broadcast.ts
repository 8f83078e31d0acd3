/**
 * One writer, any number of listeners, lines of JSON. A line is made when its item is published, once for all
 * listeners: what the item refers to may change afterwards. A listener that falls behind loses lines and is told how
 * many; the writer never waits and its memory stays bounded.
 */
export interface Broadcast<T> {
  readonly listeners: number;
  publish(item: T): void;
  /** Batches of lines from now on, at most one batch per `everyMs`, until `signal` aborts. */
  listen(options: { everyMs: number; signal: AbortSignal }): AsyncGenerator<Batch, void, undefined>;
}

export interface Batch {
  /** Each ends with a line feed. */
  readonly lines: readonly string[];
  /** How many lines were lost after these because the listener was too slow. */
  readonly dropped: number;
}

interface Inbox {
  lines: string[];
  length: number;
  dropped: number;
}

/** What waits for one listener, in UTF-16 units. */
const MAX_LENGTH = 4 * 1024 * 1024;

/** @param capacity how many lines may wait for one listener; they are bounded in length, too. */
export function broadcast<T>(capacity: number): Broadcast<T> {
  const inboxes = new Set<Inbox>();
  return {
    get listeners() {
      return inboxes.size;
    },
    publish(item) {
      if (inboxes.size === 0) return;
      const line = `${JSON.stringify(item)}\n`;
      for (const inbox of inboxes) {
        const isFull = inbox.lines.length >= capacity || inbox.length + line.length > MAX_LENGTH;
        // Once one is lost, all that follow are, so that there is one gap and it is at the end.
        if (isFull || inbox.dropped > 0) inbox.dropped += 1;
        else {
          inbox.lines.push(line);
          inbox.length += line.length;
        }
      }
    },
    async *listen({ everyMs, signal }) {
      const inbox: Inbox = { lines: [], length: 0, dropped: 0 };
      inboxes.add(inbox);
      try {
        while (!signal.aborted) {
          await pause(everyMs, signal);
          const { lines, dropped } = inbox;
          if (lines.length === 0 && dropped === 0) continue;
          Object.assign(inbox, { lines: [], length: 0, dropped: 0 });
          yield { lines, dropped };
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
