/**
 * What an engine has to give: keys with revisions, changed several at a time by compare-and-set, sessions that end when nobody keeps
 * them alive, and the changes of a map in order. Everything else, from locks to elections, is written once over it (`recipes/`).
 */
import { refusalOf } from "../cluster/services/state/refusals.ts";
import { EnvironmentError, UsageError } from "../core/errors.ts";
import { type RefusalCode, refuse } from "../protocols/service/coordination-service/operations.ts";

/**
 * The engine's number of a change: a later change has a greater one, over all keys. Only after the engine was restored to an earlier
 * state, such as from a backup, revisions are lower than before: `recipes/history.ts` detects it.
 */
export type StoreRevision = number;

export interface StoreEntry {
  readonly key: string;
  readonly value: string;
  /** Of its last change. */
  readonly revision: StoreRevision;
}

/** A key is as it was read. Revision 0: it is absent. */
export interface Check {
  readonly key: string;
  readonly revision: StoreRevision;
}

/** Null: the key goes. */
export interface Write {
  readonly key: string;
  readonly value: string | null;
}

/** `release`: gives back what is held or waited for. It grows by a part of what was asked for before, at most. */
export type ChangeKind = "release" | "other";

export interface StoreChange extends Write {
  readonly revision: StoreRevision;
}

export interface RangeRequest {
  /** The first key, and the first one behind the last. */
  readonly from: string;
  readonly to: string;
  readonly limit: number;
}

/** Keys below this are those of maps: of these the engine remembers changes. */
export const MAP_KEYS = "m/";

/** How many of the last changes are remembered, where the engine does not say so itself. */
export const KEPT_CHANGES = 10_000;
/** And of how many bytes, or characters. */
export const KEPT_LENGTH = 16 * 1024 * 1024;

/**
 * One connection to an engine. Each call is answered or fails within `callTimeoutMs` of the engine's options. Reads see
 * every change that was answered before they were asked for.
 */
export interface Store {
  /** As the program knows it, such as `postgres`. */
  readonly name: string;
  /** How many keys one commit may check and write; 1: the same for both. */
  readonly maxKeys: number;
  /** @throws StoreError */
  get(key: string): Promise<StoreEntry | null>;
  /** In the order of the keys. */
  range(range: RangeRequest): Promise<{ revision: StoreRevision; entries: StoreEntry[]; isMore: boolean }>;
  /**
   * All writes at one revision if all checks hold; null: nothing was done, as one does not hold. A release has room where other
   * changes have none. @throws StoreError
   */
  commit(checks: readonly Check[], writes: readonly Write[], change?: ChangeKind): Promise<StoreRevision | null>;
  /** What changed below a prefix after a revision, up to that of the answer. Null: that is not remembered any more. */
  changes(
    prefix: string,
    after: StoreRevision,
  ): Promise<{ revision: StoreRevision; changes: readonly StoreChange[] } | null>;
  /** That of the last change. */
  revision(): Promise<StoreRevision>;
  /**
   * Begins a session, which lasts for `ttlMs` from when the engine heard of it. @returns a number that no other session has had. After a
   * restore the number of a lost session may be given again; then `keepAlive` of the lost session returns false, or none was lost.
   */
  openSession(ttlMs: number): Promise<number>;
  /** For `ttlMs` from now on. False: it has ended. */
  keepAlive(session: number): Promise<boolean>;
  endSession(session: number): Promise<void>;
  /** Those that have not ended. One that has does not begin again. */
  living(sessions: readonly number[]): Promise<ReadonlySet<number>>;
  /** Calls back when something may have changed. It may be called for nothing, and need not be called: what counts is looked at now and then. Until what is returned is called. */
  onHint(listener: () => void): () => void;
  close(): Promise<void>;
}

/** A refusal as an error, with the reasons that the replicated log has. */
export const refused = (code: RefusalCode, reason: string): Error => refusalOf(refuse(code, reason));

/** Calls its listeners back when something may have changed. */
export class Hints {
  readonly #listeners = new Set<() => void>();

  /** @returns what ends it */
  readonly on = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  readonly send = (): void => {
    for (const listener of this.#listeners) listener();
  };
}

/** A call to the engine has failed. */
export class StoreError extends EnvironmentError {
  /** @param isUncertain whether what was asked for may have been done, or be done yet. */
  constructor(
    message: string,
    readonly isUncertain: boolean,
    options?: ErrorOptions,
  ) {
    super("engine-unavailable", message, options);
  }
}

/** That the engine is away or refuses, or that others have put there what cannot be read. Whatever else is thrown is a mistake of ours. */
export const isForeseen = (error: unknown): boolean => error instanceof EnvironmentError || error instanceof UsageError;

/** The first key behind all that begin with a prefix, where the next character of its last one is a character. */
export const behind = (prefix: string): string =>
  prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);

/** The first key that may come behind one: no key has a zero in it. */
export const nextKey = (key: string): string => `${key}\u0001`;

/** The order of keys. That of JavaScript has code points above U+FFFF before those from U+E000 on. */
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
