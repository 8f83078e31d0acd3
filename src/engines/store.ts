/**
 * The interface that an engine must provide: keys with revisions, commits of several keys by compare-and-set, sessions that
 * expire unless they are kept alive, and the changes of a map in order. Locks, elections and everything else are written
 * once on top of it (`recipes/`).
 */
import { refusalOf } from "../cluster/services/state/refusals.ts";
import { EnvironmentError, UsageError } from "../core/errors.ts";
import { type RefusalCode, refuse } from "../protocols/service/coordination-service/operations.ts";

/**
 * The engine's number of a change. A later change of any key has a higher one. Only after the engine was restored to an
 * earlier state, such as from a backup, are revisions lower than before: `recipes/history.ts` detects it.
 */
export type StoreRevision = number;

export interface StoreEntry {
  readonly key: string;
  readonly value: string;
  /** The revision of its last change. */
  readonly revision: StoreRevision;
}

/** A condition of a commit: the key's revision is unchanged. Revision 0: the key is absent. */
export interface Check {
  readonly key: string;
  readonly revision: StoreRevision;
}

/** A write of a commit. Null deletes the key. */
export interface Write {
  readonly key: string;
  readonly value: string | null;
}

/** `release`: the change releases or withdraws something. At most, it grows the state by part of an earlier request. */
export type ChangeKind = "release" | "other";

export interface StoreChange extends Write {
  readonly revision: StoreRevision;
}

export interface RangeRequest {
  /** The first key, inclusive, and the end of the range, exclusive. */
  readonly from: string;
  readonly to: string;
  readonly limit: number;
}

/** The prefix of all keys of maps. The engine retains the changes of these keys. */
export const MAP_KEYS = "m/";

/** How many changes are retained, if the engine has no limit of its own. */
export const KEPT_CHANGES = 10_000;
/** The bytes, or characters, of these changes. */
export const KEPT_LENGTH = 16 * 1024 * 1024;

/**
 * A connection to an engine. Each call is answered or fails within a limit that depends on the session's length. A read
 * sees every change that was acknowledged before the read was requested.
 */
export interface Store {
  /** The engine's name, such as `postgres`. */
  readonly name: string;
  /** How many keys one commit may check and write. 1: it may check and write the same single key. */
  readonly maxKeys: number;
  /** @throws StoreError */
  get(key: string): Promise<StoreEntry | null>;
  /** Entries in the order of their keys. */
  range(range: RangeRequest): Promise<{ revision: StoreRevision; entries: StoreEntry[]; isMore: boolean }>;
  /**
   * Makes all writes at one revision if all checks hold. Null: a check failed, and nothing was written. A release succeeds
   * even if the engine has no space for other changes. @throws StoreError
   */
  commit(checks: readonly Check[], writes: readonly Write[], change?: ChangeKind): Promise<StoreRevision | null>;
  /** Changes below a prefix after a revision, up to the returned revision. Null: some have been dropped. */
  changes(
    prefix: string,
    after: StoreRevision,
  ): Promise<{ revision: StoreRevision; changes: readonly StoreChange[] } | null>;
  /** The revision of the last change. */
  revision(): Promise<StoreRevision>;
  /**
   * Begins a session, which lasts for `ttlMs` after the engine received the call. @returns a number that no other session
   * has had. After a restore the number of a lost session may be given again; then `keepAlive` of the lost session returns
   * false, or no session was lost.
   */
  openSession(ttlMs: number): Promise<number>;
  /** Extends the session to `ttlMs` from now. False: it has ended. */
  keepAlive(session: number): Promise<boolean>;
  endSession(session: number): Promise<void>;
  /** The sessions that have not ended. An ended session never returns. */
  living(sessions: readonly number[]): Promise<ReadonlySet<number>>;
  /**
   * Calls the listener when something may have changed. Calls may be superfluous or missing: callers also check
   * periodically. @returns a function that removes the listener
   */
  onHint(listener: () => void): () => void;
  close(): Promise<void>;
}

/** A refusal as an error, with the codes of the replicated log. */
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

/** A call to the engine failed. */
export class StoreError extends EnvironmentError {
  /** @param isUncertain whether the request may have taken effect, or may still do so. */
  constructor(
    message: string,
    readonly isUncertain: boolean,
    options?: ErrorOptions,
  ) {
    super("engine-unavailable", message, options);
  }
}

/** The engine is unreachable or refuses, or another program wrote unreadable values. Any other error is a bug. */
export const isForeseen = (error: unknown): boolean => error instanceof EnvironmentError || error instanceof UsageError;

/** The first key after all keys with a prefix. Assumes that the code unit after its last one is a character. */
export const behind = (prefix: string): string =>
  prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);

/** The smallest key after the given one: keys contain no NUL. */
export const nextKey = (key: string): string => `${key}\u0001`;

/** The order of keys. JavaScript compares code units, which puts code points above U+FFFF before U+E000 to U+FFFF. */
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
