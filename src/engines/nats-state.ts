/**
 * The state that results from all of a stream's records. Processes that apply the same records in the same order have
 * the same entries, changes and sessions. The time comes from the records, which are stamped by the stream's leader. It
 * never goes back, even if the leaders' clocks differ.
 */
import {
  behind,
  byCodePoint,
  type Check,
  KEPT_CHANGES,
  KEPT_LENGTH,
  MAP_KEYS,
  type RangeRequest,
  type StoreChange,
  type StoreEntry,
  type Write,
} from "./store.ts";

/** A request from a process. */
export type LogRequest =
  | {
      readonly type: "commit";
      readonly checks: readonly Check[];
      readonly writes: readonly Write[];
      /**
       * Whether the request is a release. A release is accepted even if the state is full, because otherwise a held
       * lock could never change hands.
       */
      readonly isRelease?: boolean;
    }
  | { readonly type: "open"; readonly ttlMs: number }
  | { readonly type: "keep"; readonly session: number }
  | { readonly type: "end"; readonly session: number }
  /** Asks which of the sessions are alive at the time of this record. */
  | { readonly type: "living"; readonly sessions: readonly number[] };

/** The answer to a request. */
export type LogAnswer =
  | { readonly type: "committed"; readonly revision: number }
  /** A check failed, so nothing was written. */
  | { readonly type: "other" }
  /** The state would exceed `MAX_STATE_LENGTH` characters. */
  | { readonly type: "full" }
  | { readonly type: "living"; readonly sessions: readonly number[] };

/**
 * The maximum total length of keys and values, in UTF-16 code units. Every process that follows the stream keeps them
 * in memory.
 */
export const MAX_STATE_LENGTH = 32 * 1024 * 1024;

interface Session {
  readonly ttlMs: number;
  until: number;
}

/** The content of a snapshot. */
interface Saved {
  readonly at: number;
  readonly now: number;
  readonly forgotten: number;
  readonly entries: readonly StoreEntry[];
  readonly changes: readonly StoreChange[];
  readonly sessions: readonly (readonly [number, Session])[];
}

/** The keys and sessions that result from the records applied so far. */
export class LogState {
  /** The number of the last applied record, or 0 if there is none. */
  at = 0;
  #now = 0;
  /** Changes up to this revision have been dropped. */
  #forgotten = 0;
  readonly #entries = new Map<string, StoreEntry>();
  #length = 0;
  #changes: StoreChange[] = [];
  #changesLength = 0;
  readonly #sessions = new Map<number, Session>();

  /** @param text the result of `save` */
  static restore(text: string): LogState {
    const { at, now, forgotten, entries, changes, sessions } = JSON.parse(text) as Saved;
    const state = new LogState();
    state.at = at;
    state.#now = now;
    state.#forgotten = forgotten;
    for (const entry of entries) state.#set(entry);
    for (const change of changes) state.#remember(change);
    for (const [id, session] of sessions) state.#sessions.set(id, session);
    return state;
  }

  save(): string {
    const saved: Saved = {
      at: this.at,
      now: this.#now,
      forgotten: this.#forgotten,
      entries: [...this.#entries.values()],
      changes: this.#changes,
      sessions: [...this.#sessions],
    };
    return JSON.stringify(saved);
  }

  /**
   * Applies a record.
   * @param at the record's number in the stream
   * @param ms the record's time
   * @param request null if the record is not a readable request
   */
  apply(at: number, ms: number, request: LogRequest | null): LogAnswer {
    this.at = at;
    this.#now = Math.max(this.#now, ms);
    switch (request?.type) {
      case "commit":
        return this.#commit(request.checks, request.writes, request.isRelease === true);
      case "open": {
        for (const [id, { until }] of this.#sessions) if (until <= this.#now) this.#sessions.delete(id);
        // Because it contains the time, this id differs from the id of any session lost in a restore.
        const id = this.#now * 1_000 + (at % 1_000);
        this.#sessions.set(id, { ttlMs: request.ttlMs, until: this.#now + request.ttlMs });
        return this.#living([id]);
      }
      case "keep": {
        const session = this.#sessions.get(request.session);
        if (session !== undefined && session.until > this.#now) session.until = this.#now + session.ttlMs;
        return this.#living([request.session]);
      }
      case "end":
        this.#sessions.delete(request.session);
        return this.#living([]);
      case "living":
        return this.#living(request.sessions);
      case undefined:
        return { type: "other" };
    }
  }

  get(key: string): StoreEntry | null {
    return this.#entries.get(key) ?? null;
  }

  range({ from, to, limit }: RangeRequest): { revision: number; entries: StoreEntry[]; isMore: boolean } {
    const entries = [...this.#entries.values()].filter(
      ({ key }) => byCodePoint(key, from) >= 0 && byCodePoint(key, to) < 0,
    );
    entries.sort((a, b) => byCodePoint(a.key, b.key));
    return { revision: this.at, entries: entries.slice(0, limit), isMore: entries.length > limit };
  }

  /** Returns the changes to keys with this prefix after a revision, or null if they have been dropped. */
  changes(prefix: string, after: number): { revision: number; changes: readonly StoreChange[] } | null {
    if (after < this.#forgotten) return null;
    const changes = this.#changes.filter(({ key, revision }) => revision > after && key.startsWith(prefix));
    return { revision: this.at, changes };
  }

  holds(checks: readonly Check[]): boolean {
    return checks.every(({ key, revision }) => (this.#entries.get(key)?.revision ?? 0) === revision);
  }

  #commit(checks: readonly Check[], writes: readonly Write[], isRelease: boolean): LogAnswer {
    if (!this.holds(checks)) return { type: "other" };
    const more = this.#growthBy(writes);
    if (more > 0 && !isRelease && this.#length + more > MAX_STATE_LENGTH) return { type: "full" };
    for (const { key, value } of writes) {
      this.#delete(key);
      if (value !== null) this.#set({ key, value, revision: this.at });
      if (key >= MAP_KEYS && key < behind(MAP_KEYS)) this.#remember({ key, value, revision: this.at });
    }
    return { type: "committed", revision: this.at };
  }

  #growthBy(writes: readonly Write[]): number {
    const after = new Map(writes.map(({ key, value }) => [key, value]));
    let more = 0;
    for (const [key, value] of after) {
      const before = this.#entries.get(key);
      if (before !== undefined) more -= key.length + before.value.length;
      if (value !== null) more += key.length + value.length;
    }
    return more;
  }

  #living(sessions: readonly number[]): LogAnswer {
    return { type: "living", sessions: sessions.filter((id) => (this.#sessions.get(id)?.until ?? 0) > this.#now) };
  }

  #set(entry: StoreEntry): void {
    this.#entries.set(entry.key, entry);
    this.#length += entry.key.length + entry.value.length;
  }

  #delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#length -= key.length + entry.value.length;
  }

  #remember(change: StoreChange): void {
    this.#changes.push(change);
    this.#changesLength += lengthOf(change);
    if (this.#changes.length <= 2 * KEPT_CHANGES && this.#changesLength <= KEPT_LENGTH) return;
    let first = Math.max(0, this.#changes.length - KEPT_CHANGES);
    let length = this.#changes.slice(first).reduce((sum, each) => sum + lengthOf(each), 0);
    while (length > KEPT_LENGTH / 2) length -= lengthOf(this.#changes[first++] as StoreChange);
    this.#forgotten = this.#changes[first - 1]?.revision ?? this.#forgotten;
    // Several changes can share a revision, so drop all of them or none.
    this.#changes = this.#changes.slice(first).filter(({ revision }) => revision > this.#forgotten);
    this.#changesLength = this.#changes.reduce((sum, each) => sum + lengthOf(each), 0);
  }
}

const lengthOf = ({ key, value }: StoreChange): number => key.length + (value?.length ?? 0);
