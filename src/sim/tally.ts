/** Counters for sent messages, in total and by type, and for messages that arrived. */
import type { Tagged } from "../core/protocol.ts";
import { unwrapped } from "../core/wrapping.ts";
import type { TraceEntry } from "../trace/entry.ts";

/** Returns the type of a message. For a message from a part of an assembly, this is the type inside all wrappings. */
const typeOf = (message: Tagged): string => unwrapped(message).type;

/** Counts of sent messages. */
export interface MessageCounts {
  readonly total: number;
  readonly byType: Readonly<Record<string, number>>;
}

export class Tally {
  total = 0;
  /** The number of times that a node sent a message to all others at once. */
  broadcasts = 0;
  readonly #counts = new Map<string, { count: number }>();
  #lastType = "";
  #lastCount = { count: 0 };

  get byType(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#counts].map(([type, { count }]) => [type, count]));
  }

  count(message: Tagged): void {
    this.total += 1;
    const type = typeOf(message);
    if (type !== this.#lastType) {
      let known = this.#counts.get(type);
      if (known === undefined) {
        known = { count: 0 };
        this.#counts.set(type, known);
      }
      this.#lastType = type;
      this.#lastCount = known;
    }
    this.#lastCount.count += 1;
  }
}

/**
 * Reads a trace and finds messages that never arrived. A duplicated message counts as arrived if any of its copies did.
 */
export class LostMessages {
  readonly #inFlight = new Map<string, string>();
  readonly #lost = new Map<string, string>();

  see(entry: TraceEntry): void {
    if (entry.kind === "send") this.#inFlight.set(entry.id, typeOf(entry.message));
    if (entry.kind === "lost") {
      const type = this.#inFlight.get(entry.id);
      if (type !== undefined) this.#lost.set(entry.id, type);
    }
    if (entry.kind === "receive") {
      this.#inFlight.delete(entry.id);
      this.#lost.delete(entry.id);
    }
  }

  /** Returns the counts, excluding messages that never arrived. */
  without({ total, byType }: MessageCounts): MessageCounts {
    const left = { ...byType };
    for (const type of this.#lost.values()) left[type] = (left[type] ?? 0) - 1;
    return { total: total - this.#lost.size, byType: left };
  }
}
