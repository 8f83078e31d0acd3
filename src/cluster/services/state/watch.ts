/**
 * A watch: the changes after a revision, in order, each exactly once. It reads past changes from its replica, and then
 * receives each change as it is applied. If its reader is too slow, it stops receiving, and reads again from the replica
 * once the reader has caught up. So a slow reader costs a bounded backlog, and misses nothing that the replica retains.
 */
import type { Change as LoggedChange } from "../../../protocols/service/coordination-service/operations.ts";
import { sleep } from "../../../runtime/platform/sleep.ts";
import { CoordinationError, isOwnEnd } from "../coordination-error.ts";
import { onAbort } from "../on-abort.ts";
import { endedIn } from "./calls.ts";
import { limits } from "./limits.ts";
import { ASK_AGAIN_MS, isPassing } from "./refusals.ts";
import type { Service, Told } from "./service.ts";

export interface Watched {
  readonly map: string;
  /** Null: after all changes that this replica has applied so far. */
  readonly after: number | null;
  readonly wants: (key: string) => boolean;
  readonly signal: AbortSignal | undefined;
}

const DONE = { done: true, value: undefined } as const;

/** The name in error messages. */
const watchOf = (map: string): string => `the watch of the map "${map}"`;

export class Watch<T> implements AsyncIterableIterator<T> {
  readonly #service: Service;
  readonly #watched: Watched;
  readonly #shown: (change: LoggedChange) => T;
  /** Changes up to this revision have been read. Null: the start revision is not known yet. */
  #after: number | null;
  /** The last revision received live. */
  #heard = 0;
  /**
   * How many changes of that revision were received: a client may change its member between two of them, and reads the
   * others.
   */
  #ofHeard = 0;
  /** How many changes of this revision the next read must skip. */
  #taken = { revision: 0, changes: 0 };
  readonly #waiting = new Backlog();
  /** Whether changes are received live; otherwise those after `#after` are read. */
  #isLive = false;
  /** Changes received during a read. */
  #meanwhile: Backlog | null = null;
  #error: Error | null = null;
  #isEnded = false;
  #wake: (() => void) | null = null;
  /** The start revision, if it is being read. */
  #beginning: Promise<number> | null = null;
  readonly #stop: readonly (() => void)[] = [];
  /** Serializes calls of `next`. */
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
      this.#error = null; // Later calls return the end.
      if (error !== null) throw error;
      if (this.#isEnded) return DONE;
      await new Promise<void>((resolve) => {
        this.#wake = resolve; // Set before any request: the watch may end while a request is unanswered.
        if (!this.#isLive) void this.#ask().then(resolve);
      });
    }
  }

  /** It may have ended before the answer: then it reports nothing. */
  async #ask(): Promise<void> {
    this.#meanwhile = new Backlog();
    const { map } = this.#watched;
    try {
      const after = this.#after ?? (await (this.#beginning ?? this.#service.current()));
      this.#after = after;
      const found = await this.#service.query({ type: "changes", map, after }, () => !this.#isEnded);
      if (this.#isEnded) return;
      for (const change of found.answer.changes) this.#takeNew(change);
      this.#taken = { revision: 0, changes: 0 };
      this.#after = Math.max(after, found.revision); // Its start revision may be in the future.
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
      this.#meanwhile = null; // Missed changes are retained, and read.
      return this.#isLive ? this.#missed() : undefined;
    }
    if (event.type !== "changed" || event.map !== this.#watched.map) return;
    if (this.#isLive) this.#live(event);
    else if (this.#meanwhile?.hasRoomFor(event) === true) this.#meanwhile.push(event);
    else this.#meanwhile = null; // The read is repeated.
  }

  #live(change: LoggedChange): void {
    if (change.revision <= (this.#after ?? 0)) return;
    if (this.#watched.wants(change.key) && !this.#waiting.hasRoomFor(change)) return this.#fallBehind(change);
    this.#ofHeard = change.revision === this.#heard ? this.#ofHeard + 1 : 1;
    this.#heard = change.revision;
    this.#take(change);
  }

  /** Reads the changes after the last one received, including changes of the same revision. */
  #missed(): void {
    this.#isLive = false;
    if (this.#heard > (this.#after ?? 0)) {
      this.#after = this.#heard - 1;
      this.#taken = { revision: this.#heard, changes: this.#ofHeard };
    }
    this.#awake();
  }

  /** Reads and live events have the same order within a revision. */
  #takeNew(change: LoggedChange): void {
    if (change.revision === this.#taken.revision && this.#taken.changes > 0) this.#taken.changes -= 1;
    else this.#take(change);
  }

  /** Reads from this change on: one revision may have changed several keys. */
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

  /** The member or client has ended. */
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

/** A bounded list of changes, in order: limits their number, and the size of keys and values. */
class Backlog {
  readonly changes: LoggedChange[] = [];
  #chars = 0;

  /** A first change always fits. */
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
    `the engine was restored to an earlier state, such as from a backup, so changes of the map "${map}" may be missing: read the map with range(), and watch from its revision`,
  );

const compacted = (map: string, after: number): CoordinationError =>
  new CoordinationError(
    "compacted",
    "missed",
    `the changes of the map "${map}" after revision ${after} are no longer kept: read the map with range(), and watch from its revision`,
  );
