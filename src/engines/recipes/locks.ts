/**
 * Locks, semaphores and elections on an engine. Each name has one document, which is changed by compare-and-set. A
 * waiter reads it after each hint from the engine, and also periodically. The waiter also removes holders and waiters
 * whose sessions have ended, so that a crashed process's lock passes to the next waiter.
 */
import {
  type Answer,
  type GrantOperation,
  type Result,
  refuse,
  type ServiceEvent,
  type WaitId,
} from "../../protocols/service/coordination-service/operations.ts";
import { type ChangeKind, type Check, isForeseen, StoreError } from "../store.ts";
import type { Granting, History } from "./history.ts";
import { lockKey } from "./keyspace.ts";
import {
  type Asking,
  applied,
  holdersIn,
  type LockDocument,
  readDocument,
  sessionsIn,
  withoutSessions,
} from "./lock-document.ts";
import { fewAtOnce, type Retrying } from "./pacing.ts";

export interface LocksOptions {
  readonly history: History;
  readonly retrying: Retrying;
  isOwn(session: number): boolean;
  tell(event: ServiceEvent): void;
  /** Called when this process has lost a lock that it did not release. */
  lost(): void;
}

/** This process's knowledge of a name. */
interface Known {
  /** The last operation. Operations on the same name run one after another, in the order of the calls. */
  last: Promise<unknown>;
  underWay: number;
  followers: number;
  /** Whether this process is waiting for the name. */
  isWaiting: boolean;
  /** Whether an answer was lost, so that an operation may still take effect. */
  isUncertain: boolean;
  /** The document's revision at the last commit that failed because of a check. */
  conflict: number | null;
  /** The waits that led to a grant which this process still holds and has not begun to release. */
  readonly own: Set<WaitId>;
  /** The holders seen most recently, by session and wait. */
  readonly holders: Map<string, { session: number; token: number }>;
}

interface Read {
  readonly revision: number;
  readonly document: LockDocument | null;
}

/** Acquires and releases grants, and watches other holders. */
export class Locks {
  readonly #options: LocksOptions;
  readonly #known = new Map<string, Known>();

  constructor(options: LocksOptions) {
    this.#options = options;
  }

  follow(name: string): () => void {
    const known = this.#at(name);
    known.followers += 1;
    void this.look([name]);
    return () => {
      known.followers -= 1;
      this.#forget(name);
    };
  }

  /** @param asking returns the requester, or null once the caller is no longer waiting */
  submit(operation: GrantOperation, asking: () => Asking | null): Promise<{ revision: number; result: Result }> {
    const { name } = operation;
    return this.#inTurn(name, async (known) => {
      if (operation.type === "withdraw") known.own.delete(operation.wait);
      else if (operation.type === "release") known.own.clear();
      for (let tries = 0; ; tries++) {
        const by = asking();
        if (by === null) return { revision: 0, result: refuse("session-expired", "the session has ended") };
        const done = await this.#try(known, operation, by);
        if (done !== null) return done;
        await this.#options.retrying.pause(tries);
      }
    });
  }

  async holders(name: string): Promise<{ revision: number; answer: Answer & { type: "holders" } }> {
    const { revision, document } = await this.#read(name);
    const living = await this.#options.history.store.living(document === null ? [] : sessionsIn(document));
    const holders = holdersIn(document).filter(({ session }) => living.has(session));
    const waiting = (document?.waiters ?? []).filter(({ session }) => living.has(session)).length;
    return { revision, answer: { type: "holders", holders, waiting } };
  }

  /** The names that this process is waiting for or following, or for which an operation may still take effect. */
  get watched(): string[] {
    return [...this.#known].flatMap(([name, { followers, isWaiting, isUncertain }]) =>
      followers > 0 || isWaiting || isUncertain ? [name] : [],
    );
  }

  /**
   * Checks that the engine still has this process's grants. The engine can lose a grant, for example in a failover to a
   * lagging replica, and another process can then acquire the lock. The history check no longer detects this once the
   * revision is higher than before the failover. After a failure, the next check retries.
   */
  async lookAtOwn(): Promise<void> {
    const names = [...this.#known].flatMap(([name, { own }]) => (own.size > 0 ? [name] : []));
    if (names.length === 0) return;
    try {
      await this.#options.history.check();
      await this.look(names);
    } catch (error) {
      if (!isForeseen(error)) throw error;
    }
  }

  /**
   * Reports changes, and removes holders and waiters whose sessions have ended. After a failure, the next round
   * retries.
   */
  async look(names: readonly string[] = this.watched): Promise<void> {
    await fewAtOnce(names, (name) => this.#lookAt(name));
  }

  async #lookAt(name: string): Promise<void> {
    try {
      await this.#inTurn(name, () => this.#look(name));
    } catch (error) {
      if (!isForeseen(error)) throw error;
    }
  }

  /** Discards this process's grants, waits and uncertain operations. Call this when the session has ended. */
  forgetSession(): void {
    for (const [name, known] of this.#known) {
      known.isWaiting = false;
      known.isUncertain = false;
      known.own.clear();
      this.#forget(name);
    }
  }

  async #try(known: Known, operation: GrantOperation, by: Asking) {
    const { history } = this.#options;
    const { name } = operation;
    try {
      const [{ revision, document }] = await Promise.all([this.#read(name), history.refresh()]);
      // The lock is unchanged, so it was the history check that failed.
      if (revision === known.conflict) await history.check();
      const { granting } = history;
      if (granting === null) return null;
      const { value, result } = applied(document, name, by, operation, granting.offset);
      const isVain = result.type === "refused" || JSON.stringify(document) === value;
      if (isVain || (document === null && value === null)) {
        this.#observe(name, document);
        return { revision, result };
      }
      const change = operation.type === "acquire" ? "other" : "release";
      const at = await this.#commit({ key: lockKey(name), revision }, value, granting, change);
      if (at === null) {
        known.conflict = revision;
        return null;
      }
      this.#observe(name, value === null ? null : readDocument({ value, revision: at }));
      return {
        revision: at,
        result: result.type === "granted" && result.token === 0 ? { ...result, token: granting.offset + at } : result,
      };
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      if (error.isUncertain) known.isUncertain = true;
      return null;
    }
  }

  async #look(name: string): Promise<void> {
    const { history, isOwn, lost } = this.#options;
    const { store } = history;
    const { revision, document } = await this.#read(name);
    const { granting } = history;
    const holders = document?.holders ?? [];
    for (const wait of this.#at(name).own)
      if (!holders.some((held) => held.wait === wait && isOwn(held.session))) return lost();
    if (document === null || granting === null) return this.#observe(name, document);
    const sessions = sessionsIn(document);
    const living = await store.living(sessions);
    const ended = sessions.filter((session) => !living.has(session));
    if (ended.length === 0) return this.#observe(name, document);
    const value = withoutSessions(document, name, ended, granting.offset);
    const at = await this.#commit({ key: lockKey(name), revision }, value, granting, "release");
    if (at !== null) this.#observe(name, value === null ? null : readDocument({ value, revision: at }));
  }

  async #commit(lock: Check, value: string | null, { check, writes, done }: Granting, change: ChangeKind) {
    const { store } = this.#options.history;
    const at = await store.commit([lock, check], [{ key: lock.key, value }, ...writes], change);
    if (at !== null) done(at);
    return at;
  }

  async #read(name: string): Promise<Read> {
    const entry = await this.#options.history.store.get(lockKey(name));
    if (entry === null) return { revision: 0, document: null };
    return { revision: entry.revision, document: readDocument(entry) };
  }

  /** Reports new holders, and holders that have released or lost the lock. */
  #observe(name: string, document: LockDocument | null): void {
    const known = this.#at(name);
    const { isOwn, tell } = this.#options;
    known.isWaiting = document?.waiters.some(({ session }) => isOwn(session)) === true;
    const holders = new Map((document?.holders ?? []).map((held) => [`${held.session} ${held.wait}`, held]));
    for (const [key, { session, token }] of [...known.holders]) {
      if (holders.has(key)) continue;
      known.holders.delete(key);
      tell({ type: "released", name, session, token });
    }
    for (const [key, { session, wait, token, note }] of holders) {
      if (isOwn(session)) known.own.add(wait);
      if (known.holders.has(key)) continue;
      known.holders.set(key, { session, token });
      tell({ type: "granted", name, session, wait, token, note });
    }
  }

  async #inTurn<T>(name: string, work: (known: Known) => Promise<T>): Promise<T> {
    const known = this.#at(name);
    known.underWay += 1;
    const result = known.last.then(() => work(known));
    known.last = result.catch(() => {});
    try {
      return await result;
    } finally {
      known.underWay -= 1;
      this.#forget(name);
    }
  }

  #at(name: string): Known {
    const known = this.#known.get(name) ?? {
      last: Promise.resolve(),
      underWay: 0,
      followers: 0,
      isWaiting: false,
      isUncertain: false,
      conflict: null,
      own: new Set(),
      holders: new Map(),
    };
    this.#known.set(name, known);
    return known;
  }

  /** Drops the name if this process is neither following it nor waiting for it nor holding it. */
  #forget(name: string): void {
    const known = this.#known.get(name);
    if (known === undefined) return;
    const { underWay, followers, isWaiting, isUncertain, own } = known;
    if (underWay === 0 && followers === 0 && !isWaiting && !isUncertain && own.size === 0) this.#known.delete(name);
  }
}
