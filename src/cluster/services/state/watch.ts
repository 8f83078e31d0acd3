/**
 * A watch: the changes behind a revision, in order, none left out and none told twice. It asks its replica for what has been, and
 * from there on is told of each change as it is applied. Who reads too slowly is told nothing more, and asks again once it has read
 * what waits for it: so a slow reader costs a bounded backlog, and misses nothing that the replica remembers.
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
  /** Null: from what this replica has applied by now. */
  readonly after: number | null;
  readonly wants: (key: string) => boolean;
  readonly signal: AbortSignal | undefined;
}

const DONE = { done: true, value: undefined } as const;

/** In an error's words. */
const watchOf = (map: string): string => `the watch of the map "${map}"`;

export class Watch<T> implements AsyncIterableIterator<T> {
  readonly #service: Service;
  readonly #watched: Watched;
  readonly #shown: (change: LoggedChange) => T;
  /** What stands up to here has been asked for. Null: it is not known yet from where on. */
  #after: number | null;
  /** What is behind that, and was taken as it was applied. */
  #heard = 0;
  /** So many changes of that revision: a connection may move between two of them, and the others are asked for. */
  #ofHeard = 0;
  /** Of what is asked for next, so many changes of this revision have been taken. */
  #taken = { revision: 0, changes: 0 };
  readonly #waiting = new Backlog();
  /** Whether changes are taken as they are applied; otherwise the replica is asked for those behind `#after`. */
  #isLive = false;
  /** What is applied while it is asked. */
  #meanwhile: Backlog | null = null;
  #error: Error | null = null;
  #isEnded = false;
  #wake: (() => void) | null = null;
  /** From where on, where that is asked for. */
  #beginning: Promise<number> | null = null;
  readonly #stop: readonly (() => void)[] = [];
  /** Calls of `next` are answered one after the other. */
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
    this.#beginning?.catch(() => {}); // Who reads is told.
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
      this.#error = null; // Calls after the one that rejects find the end.
      if (error !== null) throw error;
      if (this.#isEnded) return DONE;
      await new Promise<void>((resolve) => {
        this.#wake = resolve; // Whatever is asked for: it may end while nobody answers.
        if (!this.#isLive) void this.#ask().then(resolve);
      });
    }
  }

  /** It may have ended by the time that it is answered: then it tells nothing. */
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
      this.#after = Math.max(after, found.revision); // What it is to begin behind may be still to come.
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
      this.#meanwhile = null; // Changes in between are remembered, and asked for.
      return this.#isLive ? this.#missed() : undefined;
    }
    if (event.type !== "changed" || event.map !== this.#watched.map) return;
    if (this.#isLive) this.#live(event);
    else if (this.#meanwhile?.hasRoomFor(event) === true) this.#meanwhile.push(event);
    else this.#meanwhile = null; // It is asked once more.
  }

  #live(change: LoggedChange): void {
    if (change.revision <= (this.#after ?? 0)) return;
    if (this.#watched.wants(change.key) && !this.#waiting.hasRoomFor(change)) return this.#fallBehind(change);
    this.#ofHeard = change.revision === this.#heard ? this.#ofHeard + 1 : 1;
    this.#heard = change.revision;
    this.#take(change);
  }

  /** What came behind the last change that was heard, of the same revision as well. */
  #missed(): void {
    this.#isLive = false;
    if (this.#heard > (this.#after ?? 0)) {
      this.#after = this.#heard - 1;
      this.#taken = { revision: this.#heard, changes: this.#ofHeard };
    }
    this.#awake();
  }

  /** Changes of a revision are asked for and told in one order. */
  #takeNew(change: LoggedChange): void {
    if (change.revision === this.#taken.revision && this.#taken.changes > 0) this.#taken.changes -= 1;
    else this.#take(change);
  }

  /** From this change on it is asked for: one revision may have changed several keys. */
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

/** Changes that wait, in order; as many, and as much of keys and values, as may. */
class Backlog {
  readonly changes: LoggedChange[] = [];
  #chars = 0;

  /** The first has room, however long it is. */
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
    `the changes of the map "${map}" behind revision ${after} are not remembered any more: read the map with range(), and watch from its revision`,
  );
