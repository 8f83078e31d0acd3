/**
 * A watch: the changes after a revision, in order, each exactly once. It reads past changes from its replica, and then
 * receives each change as it is applied. If its reader is too slow, the watch stops receiving changes, and reads from
 * the replica again once the reader has caught up. A slow reader therefore costs only a bounded backlog, and misses
 * nothing that the replica retains.
 */
import type { Change as LoggedChange } from "../../../protocols/service/coordination-service/operations.ts";
import { sleep } from "../../../runtime/platform/sleep.ts";
import { CoordinationError, isOwnEnd } from "../coordination-error.ts";
import { onAbort } from "../on-abort.ts";
import { endedIn } from "./calls.ts";
import { limits } from "./limits.ts";
import { ASK_AGAIN_MS, isPassing } from "./refusals.ts";
import type { Service, Told } from "./service.ts";

/** The changes that a watch reports. */
export interface Watched {
  readonly map: string;
  /**
   * The watch reports changes after this revision. If null, it starts after the last change that this replica has
   * applied.
   */
  readonly after: number | null;
  readonly wants: (key: string) => boolean;
  readonly signal: AbortSignal | undefined;
}

const DONE = { done: true, value: undefined } as const;

/** Returns the name of the watch in error messages. */
const watchOf = (map: string): string => `the watch of the map "${map}"`;

/** The iterator of a watch. */
export class Watch<T> implements AsyncIterableIterator<T> {
  readonly #service: Service;
  readonly #watched: Watched;
  readonly #shown: (change: LoggedChange) => T;
  /** The revision of the last change that has been read. Null until the start revision is known. */
  #after: number | null;
  /** The revision of the last change that was received live. */
  #heard = 0;
  /**
   * The number of changes received with that revision. If a client moves to a different member partway through a
   * revision, it then reads the rest.
   */
  #ofHeard = 0;
  /** The number of changes at this revision that the next read must skip. */
  #taken = { revision: 0, changes: 0 };
  readonly #waiting = new Backlog();
  /** Whether changes are received live. If not, the changes after `#after` are read. */
  #isLive = false;
  /** The changes received during a read. Null if no read is in progress, or if changes were missed. */
  #meanwhile: Backlog | null = null;
  #error: Error | null = null;
  #isEnded = false;
  #wake: (() => void) | null = null;
  /** The start revision, as long as it is being read. */
  #beginning: Promise<number> | null = null;
  readonly #stop: readonly (() => void)[] = [];
  /** The previous call to `next`. Calls run one after another. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(service: Service, watched: Watched, shown: (change: LoggedChange) => T) {
    this.#service = service;
    this.#watched = watched;
    this.#shown = shown;
    this.#after = watched.after ?? service.revision;
    if (service.closed !== null) {
      this.#close(service.closed);
      return;
    }
    this.#stop = [
      service.follow("map", watched.map),
      service.listen((event) => this.#hear(event)),
      onAbort(watched.signal, () => void this.return()),
    ];
    if (this.#after === null && watched.signal?.aborted !== true) this.#beginning = service.current();
    this.#beginning?.catch(() => {}); // `next()` reports the error.
    if (watched.signal?.aborted === true) this.#end();
  }

  next(): Promise<IteratorResult<T>> {
    const result = this.#last.then(() => this.#next());
    this.#last = result.catch(() => {});
    return result;
  }

  return(): Promise<IteratorResult<T>> {
    this.#waiting.clear();
    this.#end();
    return Promise.resolve(DONE);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #next(): Promise<IteratorResult<T>> {
    for (;;) {
      const change = this.#waiting.shift();
      if (change !== undefined) return { done: false, value: this.#shown(change) };
      const error = this.#error;
      this.#error = null; // Later calls report the end of the iteration.
      if (error !== null) throw error;
      if (this.#isEnded) return DONE;
      await new Promise<void>((resolve) => {
        this.#wake = resolve; // Set this before any request, since the watch may end while a request is unanswered.
        if (!this.#isLive) void this.#ask().then(resolve);
      });
    }
  }

  /** Queries the changes. Does nothing if the watch ends before the answer arrives. */
  async #ask(): Promise<void> {
    this.#meanwhile = new Backlog();
    const { map } = this.#watched;
    try {
      const after = this.#after ?? (await (this.#beginning ?? this.#service.current()));
      this.#after = after;
      const found = await this.#service.query({ type: "changes", map, after }, () => !this.#isEnded);
      if (this.#isEnded) return;
      const { changes, isMore } = found.answer;
      for (const change of changes) this.#takeNew(change);
      this.#taken = { revision: 0, changes: 0 };
      if (isMore) {
        this.#after = (changes.at(-1) as LoggedChange).revision;
        return;
      }
      this.#after = Math.max(after, found.revision); // The start revision may be in the future.
      const meanwhile = this.#meanwhile;
      this.#isLive = meanwhile !== null;
      for (const change of meanwhile?.changes ?? []) if (this.#isLive) this.#live(change);
    } catch (error) {
      this.#beginning = null;
      if (this.#isEnded) return;
      if (isPassing(error)) return await sleep(this.#service.platform.timers, ASK_AGAIN_MS, { ref: false });
      this.#fail(isCompacted(error) ? compacted(this.#watched.map, this.#after ?? 0) : (error as Error));
    } finally {
      this.#meanwhile = null;
    }
  }

  #hear(event: Told): void {
    if (event.type === "closed") {
      return this.#close(event.reason);
    }
    if (event.type === "rolled-back") return this.#fail(rolledBack(this.#watched.map));
    if (event.type === "restored") {
      this.#meanwhile = null; // The missed changes are retained and will be read.
      return this.#isLive ? this.#missed() : undefined;
    }
    if (event.type !== "changed" || event.map !== this.#watched.map) return;
    if (this.#isLive) this.#live(event);
    else if (this.#meanwhile?.hasRoomFor(event) === true) this.#meanwhile.push(event);
    else this.#meanwhile = null; // The read will be repeated.
  }

  #live(change: LoggedChange): void {
    if (change.revision <= (this.#after ?? 0)) return;
    if (this.#watched.wants(change.key) && !this.#waiting.hasRoomFor(change)) return this.#fallBehind(change);
    this.#ofHeard = change.revision === this.#heard ? this.#ofHeard + 1 : 1;
    this.#heard = change.revision;
    this.#take(change);
  }

  /** Switches to reading the changes after the last one received, including changes at the same revision. */
  #missed(): void {
    this.#isLive = false;
    if (this.#heard > (this.#after ?? 0)) {
      this.#after = this.#heard - 1;
      this.#taken = { revision: this.#heard, changes: this.#ofHeard };
    }
    this.#awake();
  }

  /**
   * Adds a change from a read to the backlog, unless it was already received live. Reads and live events list the
   * changes at a revision in the same order.
   */
  #takeNew(change: LoggedChange): void {
    if (change.revision === this.#taken.revision && this.#taken.changes > 0) this.#taken.changes -= 1;
    else this.#take(change);
  }

  /** Switches to reading from this change on. A single revision may have changed several keys. */
  #fallBehind({ revision }: LoggedChange): void {
    if (revision === this.#heard) return this.#missed();
    this.#isLive = false;
    this.#after = revision - 1;
    this.#awake();
  }

  #take(change: LoggedChange): void {
    if (!this.#watched.wants(change.key)) return;
    this.#waiting.push(change);
    this.#awake();
  }

  #awake(): void {
    this.#wake?.();
    this.#wake = null;
  }

  /** Called when the member or client has ended. */
  #close(reason: CoordinationError): void {
    if (isOwnEnd(reason)) this.#end();
    else this.#fail(endedIn(reason, { what: watchOf(this.#watched.map), changes: false }));
  }

  #fail(error: Error): void {
    this.#error = error;
    this.#end();
  }

  #end(): void {
    this.#isEnded = true;
    for (const stop of this.#stop) stop();
    this.#awake();
  }
}

/** A bounded list of changes, in order. Both their number and the total size of their keys and values are limited. */
class Backlog {
  readonly changes: LoggedChange[] = [];
  #chars = 0;

  /** Whether there is space for the change. The first change always fits. */
  hasRoomFor(change: LoggedChange): boolean {
    const { length } = this.changes;
    return length === 0 || (length < limits.backlogChanges && this.#chars + charsOf(change) <= limits.backlogChars);
  }

  push(change: LoggedChange): void {
    this.#chars += charsOf(change);
    this.changes.push(change);
  }

  shift(): LoggedChange | undefined {
    const change = this.changes.shift();
    this.#chars -= change === undefined ? 0 : charsOf(change);
    return change;
  }

  clear(): void {
    this.changes.length = 0;
    this.#chars = 0;
  }
}

const charsOf = ({ key, value }: LoggedChange): number => key.length + (value?.length ?? 0);

const isCompacted = (error: unknown): boolean => error instanceof CoordinationError && error.code === "compacted";

const rolledBack = (map: string): CoordinationError =>
  new CoordinationError(
    "compacted",
    "missed",
    `the engine was restored to an earlier state, such as from a backup, so changes to the map "${map}" may be missing: read the map with range(), and watch from its revision`,
  );

const compacted = (map: string, after: number): CoordinationError =>
  new CoordinationError(
    "compacted",
    "missed",
    `the changes to the map "${map}" after revision ${after} are no longer retained: read the map with range(), and watch from its revision`,
  );
