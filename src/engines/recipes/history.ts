/**
 * Detects that the engine was restored to an earlier state, for example from a backup or by failing over to a replica
 * that lagged behind, and ensures that tokens keep growing across restores.
 *
 * - Revisions only grow. If an answer has a lower revision than one that was already known when the call was sent, the
 *   answer therefore comes from an earlier state.
 * - Before this process gets such an answer, other processes may write more than was lost. The first process that
 *   detects a restore therefore changes the history's id in the engine, under `HISTORY_KEY`, before making any other
 *   change. All processes compare this id with the one that they know.
 * - A token is a revision plus an offset, which is stored with the id. A grant raises the offset if its token would
 *   otherwise be more than `BEHIND_MS` behind the wall clock in microseconds. After a restore, the engine has an older
 *   offset, but time has passed. Tokens are therefore higher than the lost ones, even in processes that never saw the
 *   lost state. Every change to a lock checks that the id and the offset have not changed since they were used to
 *   compute it.
 */
import type { Platform } from "../../runtime/platform/platform.ts";
import { type Check, nextKey, type Store, StoreError, type Write } from "../store.ts";
import { HISTORY_KEY } from "./keyspace.ts";
import { MOST_TOKEN } from "./lock-document.ts";
import type { Retrying } from "./pacing.ts";

export interface HistoryOptions {
  readonly store: Store;
  readonly platform: Pick<Platform, "clock" | "random">;
  readonly retrying: Retrying;
  /** Called once per restore, before any caller gets an answer from the earlier state. */
  restored(): void;
}

interface HistoryRecord {
  /** The revision at which the record was last changed in the engine. */
  readonly revision: number;
  readonly id: string;
  readonly offset: number;
}

/** A detected restore. No lock can be changed until the next session begins. */
interface DetectedRestore {
  /** Whether a process has already changed the id. */
  readonly isAnnounced: boolean;
}

/** The additional check and writes for a change to a lock, and the offset for the token that the change may grant. */
export interface Granting {
  readonly offset: number;
  readonly check: Check;
  readonly writes: readonly Write[];
  /** Called when the change has been committed, with its revision. */
  done(at: number): void;
}

const TOKENS_PER_MS = 1_000;
const BEHIND_MS = 2_000;

/** Tracks how far the engine has advanced. */
export class History {
  /** The engine, wrapped so that a call fails if its answer comes from an earlier state. */
  readonly store: Store;
  readonly #options: HistoryOptions;
  /** The highest revision since the last restore. */
  #latest = 0;
  #record: HistoryRecord | null = null;
  #restore: DetectedRestore | null = null;
  #restores = 0;
  /** No token granted before the last restore is higher than this. */
  #highestToken = 0;

  constructor(options: HistoryOptions) {
    this.#options = options;
    this.store = this.#checked(options.store);
  }

  /**
   * The additions to a change that may grant a lock. Read this after `refresh()`. Null if no session has begun yet, or
   * none since a restore.
   */
  get granting(): Granting | null {
    const record = this.#record;
    if (record === null || this.#restore !== null) return null;
    const { id, revision } = record;
    const check = { key: HISTORY_KEY, revision };
    if (!this.#isBehind(record)) return { offset: record.offset, check, writes: [], done() {} };
    const offset = this.#raised(record.offset, this.#latest);
    return {
      offset,
      check,
      writes: [writeOf({ id, offset })],
      done: (at) => {
        if (this.#record === record) this.#record = { id, offset, revision: at };
      },
    };
  }

  /**
   * Call this before reading `granting`. If the next grant would raise the offset, this first checks the engine,
   * because another process may have raised the offset, or the engine may have been restored.
   * @throws StoreError
   */
  async refresh(): Promise<void> {
    if (this.#record !== null && this.#isBehind(this.#record)) await this.check();
  }

  /**
   * Reads the record. Creates it if it does not exist, and changes its id if this process has detected a restore that
   * no process has announced yet. Call this for each session.
   * @throws StoreError
   */
  async begin(): Promise<void> {
    const { platform, retrying } = this.#options;
    for (let tries = 0; ; tries++) {
      const { revision, record } = await this.#read();
      if (this.#restore === null) this.#compare(record);
      const isNew = record === null || (this.#restore?.isAnnounced === false && record.id === this.#record?.id);
      if (!isNew) return this.#begun(record);
      const [id, offset] = [platform.random.name(), this.#raised(record?.offset ?? 0, revision)];
      const check = { key: HISTORY_KEY, revision: record?.revision ?? 0 };
      const at = await this.store.commit([check], [writeOf({ id, offset })]);
      if (at !== null) return this.#begun({ revision: at, id, offset });
      await retrying.pause(tries);
    }
  }

  #begun(record: HistoryRecord): void {
    this.#record = record;
    this.#restore = null;
  }

  /**
   * Checks that the engine was not restored, by comparing its record with the known one.
   * @throws StoreError if the engine was restored, or if it does not answer
   */
  async check(): Promise<void> {
    if (this.#restore !== null) throw restored(this.store.name);
    if (this.#record === null) return;
    const { record } = await this.#read();
    if (!this.#compare(record)) throw restored(this.store.name);
    this.#record = record;
  }

  /** @returns false if the engine was restored */
  #compare(record: HistoryRecord | null): boolean {
    const known = this.#record;
    if (known === null) return true;
    if (record !== null && record.id === known.id && record.revision >= known.revision) return true;
    this.#detect(0, { isAnnounced: record !== null && record.id !== known.id });
    return false;
  }

  #detect(revision: number, restore: DetectedRestore): void {
    this.#highestToken = Math.max(this.#highestToken, (this.#record?.offset ?? 0) + this.#latest);
    this.#latest = revision;
    this.#restore = restore;
    this.#restores += 1;
    this.#options.restored();
  }

  #isBehind({ offset }: HistoryRecord): boolean {
    const token = offset + this.#latest;
    return token <= this.#highestToken || token < this.#clock() - BEHIND_MS * TOKENS_PER_MS;
  }

  #raised(offset: number, revision: number): number {
    return Math.max(offset, Math.max(this.#highestToken, this.#clock()) + 1 - revision);
  }

  /** Returns the clock's time as a token. It is bounded, so that a wrong clock cannot use up all numbers. */
  #clock(): number {
    const token = Math.floor(this.#options.platform.clock.wall()) * TOKENS_PER_MS;
    return token < MOST_TOKEN ? token : 0;
  }

  /** Reads the record and the revision atomically, with a single range request. */
  async #read(): Promise<{ readonly revision: number; readonly record: HistoryRecord | null }> {
    const range = { from: HISTORY_KEY, to: nextKey(HISTORY_KEY), limit: 1 };
    const { revision, entries } = await this.store.range(range);
    const [entry] = entries;
    return { revision, record: entry === undefined ? null : { revision: entry.revision, ...recordIn(entry.value) } };
  }

  #checked(store: Store): Store {
    /**
     * @param revisionOf returns the revision of the engine's state at the time of the answer, or null if this cannot be
     * determined from the answer
     */
    const checked = async <T>(answer: Promise<T>, revisionOf: (found: T) => number | null, isChange = false) => {
      const [latest, restores] = [this.#latest, this.#restores];
      const found = await answer;
      const revision = revisionOf(found);
      if (restores === this.#restores && revision !== null) {
        if (revision < (isChange ? latest + 1 : latest)) this.#detect(revision, { isAnnounced: false });
        else this.#latest = Math.max(this.#latest, revision);
      }
      if (restores !== this.#restores) throw restored(store.name, isChange);
      return found;
    };
    return {
      name: store.name,
      maxKeys: store.maxKeys,
      get: (key) => store.get(key),
      range: (range) => checked(store.range(range), ({ revision }) => revision),
      commit: (checks, writes, change) =>
        checked(store.commit(checks, writes, change), (revision) => revision, writes.length > 0),
      changes: (prefix, after) => checked(store.changes(prefix, after), (found) => found?.revision ?? null),
      revision: () => checked(store.revision(), (revision) => revision),
      openSession: (ttlMs) => store.openSession(ttlMs),
      keepAlive: (session) => store.keepAlive(session),
      endSession: (session) => store.endSession(session),
      living: (sessions) => store.living(sessions),
      onHint: (listener) => store.onHint(listener),
      close: () => store.close(),
    };
  }
}

const writeOf = (record: Omit<HistoryRecord, "revision">): Write => ({
  key: HISTORY_KEY,
  value: JSON.stringify(record),
});

const restored = (engine: string, isUncertain = false): StoreError =>
  new StoreError(`${engine}: it was restored to an earlier state, such as from a backup`, isUncertain);

function recordIn(value: string): { readonly id: string; readonly offset: number } {
  try {
    const { id, offset } = JSON.parse(value) as { id: unknown; offset: unknown };
    if (typeof id === "string" && Number.isSafeInteger(offset)) return { id, offset: Math.max(0, offset as number) };
  } catch {} // Handled below.
  return { id: "", offset: 0 }; // Another program wrote the record. The next session replaces it.
}
