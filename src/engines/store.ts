/**
 * The interface that an engine must implement: keys with revisions, commits of several keys by compare-and-set,
 * sessions that expire unless they are kept alive, and the changes to a map in order. Locks, elections and everything
 * else are implemented once, on top of this interface (`recipes/`).
 */
import { refusalOf } from "../cluster/services/state/refusals.ts";
import { EnvironmentError, UsageError } from "../core/errors.ts";
import { type RefusalCode, refuse } from "../protocols/service/coordination-service/operations.ts";

/**
 * The number that the engine assigns to a change. A later change to any key has a higher number. Revisions decrease
 * only if the engine was restored to an earlier state, for example from a backup. `recipes/history.ts` detects this.
 */
export type StoreRevision = number;

/** A key and its value. */
export interface StoreEntry {
  readonly key: string;
  readonly value: string;
  /** The revision of the key's last change. */
  readonly revision: StoreRevision;
}

/** A condition for a commit: the key must still have this revision. Revision 0 means that the key does not exist. */
export interface Check {
  readonly key: string;
  readonly revision: StoreRevision;
}

/** A write within a commit. Null deletes the key. */
export interface Write {
  readonly key: string;
  readonly value: string | null;
}

/**
 * The kind of a change. A `release` releases or withdraws something. It can make the state larger, but only by part of
 * an earlier request.
 */
export type ChangeKind = "release" | "other";

/** A change to a key. */
export interface StoreChange extends Write {
  readonly revision: StoreRevision;
}

/** A range of keys to read. */
export interface RangeRequest {
  /** The first key in the range. The end of the range, `to`, is exclusive. */
  readonly from: string;
  readonly to: string;
  readonly limit: number;
}

/** The prefix for the keys of all maps. The engine retains the changes to these keys. */
export const MAP_KEYS = "m/";

/** How many changes are retained if the engine has no limit of its own. */
export const KEPT_CHANGES = 10_000;
/** The maximum total size of these changes, in bytes or characters. */
export const KEPT_LENGTH = 16 * 1024 * 1024;

/**
 * A connection to an engine. Each call is answered or fails within a time limit that depends on the length of the
 * session. A read sees every change that was acknowledged before the read was requested.
 */
export interface Store {
  /** The engine's name, such as `postgres`. */
  readonly name: string;
  /**
   * The maximum number of keys that a commit can check and write. If it is 1, a commit can both check and write the
   * same key.
   */
  readonly maxKeys: number;
  /** @throws StoreError */
  get(key: string): Promise<StoreEntry | null>;
  /** Returns entries in the order of their keys. */
  range(range: RangeRequest): Promise<{ revision: StoreRevision; entries: StoreEntry[]; isMore: boolean }>;
  /**
   * Applies all the writes at the same revision if all the checks hold. Returns null and writes nothing if a check
   * fails. A release succeeds even if the engine has no room for other changes.
   * @throws StoreError
   */
  commit(checks: readonly Check[], writes: readonly Write[], change?: ChangeKind): Promise<StoreRevision | null>;
  /**
   * Returns the changes after a revision to keys with this prefix, up to the returned revision. Returns null if some of
   * them have been dropped.
   */
  changes(
    prefix: string,
    after: StoreRevision,
  ): Promise<{ revision: StoreRevision; changes: readonly StoreChange[] } | null>;
  /** Returns the revision of the last change. */
  revision(): Promise<StoreRevision>;
  /**
   * Begins a session, which lasts for `ttlMs` from when the engine receives the call.
   * @returns a number that no other session has had. After a restore, a lost session's number may be assigned again. In
   * that case, either `keepAlive` returns false for the lost session, or no session was lost.
   */
  openSession(ttlMs: number): Promise<number>;
  /** Extends the session to `ttlMs` from now. Returns false if it has already ended. */
  keepAlive(session: number): Promise<boolean>;
  endSession(session: number): Promise<void>;
  /** Returns the given sessions that have not ended. A session that has ended never becomes alive again. */
  living(sessions: readonly number[]): Promise<ReadonlySet<number>>;
  /**
   * Calls the listener when something may have changed. Hints can be superfluous or missing, so callers also check
   * periodically.
   * @returns a function that removes the listener
   */
  onHint(listener: () => void): () => void;
  close(): Promise<void>;
}

/** Converts a refusal to an error, with the same codes as the replicated log. */
export const refused = (code: RefusalCode, reason: string): Error => refusalOf(refuse(code, reason));

/** Calls its listeners when something may have changed. */
export class Hints {
  readonly #listeners = new Set<() => void>();

  /** @returns a function that removes the listener */
  readonly on = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  readonly send = (): void => {
    for (const listener of this.#listeners) listener();
  };
}

/** Thrown if a call to the engine failed. */
export class StoreError extends EnvironmentError {
  /** @param isUncertain whether the request may have taken effect, or may still take effect */
  constructor(
    message: string,
    readonly isUncertain: boolean,
    options?: ErrorOptions,
  ) {
    super("engine-unavailable", message, options);
  }
}

/**
 * Whether the error is to be expected: the engine cannot be reached or refuses a call, or another program has written
 * unreadable values. Any other error is a bug.
 */
export const isForeseen = (error: unknown): boolean => error instanceof EnvironmentError || error instanceof UsageError;

/**
 * Returns the first key after all keys with a prefix, by incrementing the prefix's last code unit. Assumes that the
 * result is a valid character.
 */
export const behind = (prefix: string): string =>
  prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);

/** Returns the smallest key after this one. Keys do not contain NUL. */
export const nextKey = (key: string): string => `${key}\u0001`;

/**
 * Compares keys by code point, which is how the engine orders them. JavaScript compares code units, which puts code
 * points above U+FFFF before U+E000 to U+FFFF.
 */
export function byCodePoint(a: string, b: string): number {
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    const [x, y] = [a.charCodeAt(at), b.charCodeAt(at)];
    if (x !== y) return placeOf(x) - placeOf(y);
  }
  return a.length - b.length;
}
const placeOf = (unit: number): number => {
  if (unit < 0xd800) return unit;
  return unit >= 0xe000 ? unit - 0x800 : unit + 0x2000;
};
