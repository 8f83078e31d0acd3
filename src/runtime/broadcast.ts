/**
 * One writer, any number of listeners, lines of JSON. An item is serialized once for all listeners when it is published,
 * because the objects it refers to may change later. A listener that falls behind loses lines and receives their number. The
 * writer never waits, and its memory is bounded.
 */
export interface Broadcast<T> {
  readonly listeners: number;
  /** Whether published items are used: while there are listeners, and at first while the opening is kept. */
  readonly wanted: boolean;
  publish(item: T): void;
  /**
   * The lines of the first seconds, for the first caller. A program that starts a process can listen only once it runs, and
   * would otherwise miss its start. Empty if that was too long ago.
   */
  takeOpening(): readonly string[];
  /** Batches of lines from now on, at most one per `everyMs`, until `signal` aborts. */
  listen(options: { everyMs: number; signal: AbortSignal }): AsyncGenerator<Batch, void, undefined>;
}

export interface Batch {
  /** Each line ends with a line feed. */
  readonly lines: readonly string[];
  /** How many lines after these were lost because the listener was too slow. */
  readonly dropped: number;
}

interface Inbox {
  lines: string[];
  length: number;
  dropped: number;
}

/** The limit of the lines queued for one listener, in UTF-16 units. */
const MAX_LENGTH = 4 * 1024 * 1024;

/** How long the opening is kept, and up to how many lines. Its length has the same limit as a listener's queue. */
const OPENING_MS = 10_000;
const OPENING_LINES = 5_000;

/** @param capacity how many lines can be queued for one listener. Their total length is bounded, too. */
export function broadcast<T>(capacity: number): Broadcast<T> {
  const inboxes = new Set<Inbox>();
  const began = performance.now();
  let opening: string[] | null = [];
  let openingLength = 0;
  const isOpening = (): boolean => {
    if (performance.now() - began > OPENING_MS) opening = null;
    return opening !== null && opening.length < OPENING_LINES && openingLength < MAX_LENGTH;
  };
  return {
    get listeners() {
      return inboxes.size;
    },
    get wanted() {
      return inboxes.size > 0 || isOpening();
    },
    takeOpening() {
      const lines = isOpening() ? opening : null;
      opening = null;
      return lines ?? [];
    },
    publish(item) {
      if (inboxes.size === 0 && !isOpening()) return;
      const line = `${JSON.stringify(item)}\n`;
      if (isOpening()) {
        opening?.push(line);
        openingLength += line.length;
      }
      for (const inbox of inboxes) {
        const isFull = inbox.lines.length >= capacity || inbox.length + line.length > MAX_LENGTH;
        // After one lost line, drop all later ones, so that there is one gap and it is at the end.
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
