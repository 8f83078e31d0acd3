/**
 * Publishes items as JSON lines to any number of listeners. An item is serialized once for all listeners when it is
 * published, because the objects it refers to may change later. A listener that falls behind loses lines and is given
 * the number of lost lines. `publish` never waits, and memory use is bounded.
 */
export interface Broadcast<T> {
  readonly listeners: number;
  /** Whether published items are used: while there are listeners or while the opening is still being recorded. */
  readonly wanted: boolean;
  publish(item: T): void;
  /**
   * Returns the opening, the lines from the first few seconds, to the first caller. A program that starts a process can
   * only listen once the process is running, so it would otherwise miss the beginning. Returns an empty list to later
   * callers, and once the opening is too old or too long.
   */
  takeOpening(): readonly string[];
  /** Yields batches of the lines published from now on, at most one batch per `everyMs`, until `signal` aborts. */
  listen(options: { everyMs: number; signal: AbortSignal }): AsyncGenerator<Batch, void, undefined>;
}

/** Lines that a listener receives together. */
export interface Batch {
  /** The lines, each ending with a line feed. */
  readonly lines: readonly string[];
  /** How many lines after these were lost because the listener was too slow. */
  readonly dropped: number;
}

interface Inbox {
  lines: string[];
  length: number;
  dropped: number;
}

/** The maximum total length of the lines queued for one listener, in UTF-16 code units. */
const MAX_LENGTH = 4 * 1024 * 1024;

/**
 * How long the opening is available, and how many lines it can have. Its total length has the same limit as a
 * listener's queue.
 */
const OPENING_MS = 10_000;
const OPENING_LINES = 5_000;

/** @param capacity the maximum number of lines queued for one listener. Their total length is limited, too. */
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
        // Once a line is lost, drop all later lines as well, so that there is only one gap, at the end.
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
