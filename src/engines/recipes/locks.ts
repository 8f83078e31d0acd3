/**
 * Locks, semaphores and elections over an engine: each name is one document, changed by compare-and-set. Who waits looks at it when
 * the engine hints at a change, and every now and then; who waits also strikes out holders and waiters whose sessions have ended, which
 * is how the lock of a process that died comes to the next one.
 */
import type { ServiceEvent } from "../../protocols/service/coordination-service/operations.ts";
import {
  type Answer,
  type GrantOperation,
  type Result,
  refuse,
} from "../../protocols/service/coordination-service/operations.ts";
import { isForeseen, type Store, StoreError } from "../store.ts";
import { fewAtOnce } from "./few-at-once.ts";
import {
  type Asking,
  applied,
  holdersIn,
  type LockDocument,
  readDocument,
  sessionsIn,
  withoutSessions,
} from "./lock-document.ts";
import { lockKey } from "./names.ts";
import type { Retrying } from "./retrying.ts";

export interface LocksOptions {
  readonly store: Store;
  readonly retrying: Retrying;
  isOwn(session: number): boolean;
  tell(event: ServiceEvent): void;
}

/** How a name stands here. */
interface Known {
  /** What is done to one name is done in the order in which it was asked for. */
  last: Promise<unknown>;
  underWay: number;
  followers: number;
  /** Whether this process waits for it. */
  isWaiting: boolean;
  /** An answer was lost: what was asked for may come about yet. */
  isUncertain: boolean;
  /** Who held it when it was last looked at, by session and wait. */
  readonly holders: Map<string, { session: number; token: number }>;
}

interface Read {
  readonly revision: number;
  readonly document: LockDocument | null;
}

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

  /** @param asking null once it need not be done any more. */
  submit(operation: GrantOperation, asking: () => Asking | null): Promise<{ revision: number; result: Result }> {
    const { name } = operation;
    return this.#inTurn(name, async (known) => {
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
    const living = await this.#options.store.living(document === null ? [] : sessionsIn(document));
    const holders = holdersIn(document).filter(({ session }) => living.has(session));
    const waiting = (document?.waiters ?? []).filter(({ session }) => living.has(session)).length;
    return { revision, answer: { type: "holders", holders, waiting } };
  }

  /** What is waited for or followed, and what may come about yet. */
  get watched(): string[] {
    return [...this.#known].flatMap(([name, { followers, isWaiting, isUncertain }]) =>
      followers > 0 || isWaiting || isUncertain ? [name] : [],
    );
  }

  /** Tells what has changed, and strikes out those whose sessions have ended. A failure is left to the next look. */
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

  /** What this process waited for or was not sure of went with its session. */
  forgetSession(): void {
    for (const [name, known] of this.#known) {
      known.isWaiting = false;
      known.isUncertain = false;
      this.#forget(name);
    }
  }

  async #try(known: Known, operation: GrantOperation, by: Asking) {
    const { store } = this.#options;
    const { name } = operation;
    try {
      const { revision, document } = await this.#read(name);
      const { value, result } = applied(document, name, by, operation);
      const isVain = result.type === "refused" || JSON.stringify(document) === value;
      if (isVain || (document === null && value === null)) {
        this.#observe(name, document);
        return { revision, result };
      }
      const change = operation.type === "acquire" ? "other" : "release";
      const at = await store.commit([{ key: lockKey(name), revision }], [{ key: lockKey(name), value }], change);
      if (at === null) return null;
      this.#observe(name, value === null ? null : readDocument({ value, revision: at }));
      return {
        revision: at,
        result: result.type === "granted" && result.token === 0 ? { ...result, token: at } : result,
      };
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      if (error.isUncertain) known.isUncertain = true;
      return null;
    }
  }

  async #look(name: string): Promise<void> {
    const { store } = this.#options;
    const { revision, document } = await this.#read(name);
    if (document === null) return this.#observe(name, null);
    const sessions = sessionsIn(document);
    const living = await store.living(sessions);
    const ended = sessions.filter((session) => !living.has(session));
    if (ended.length === 0) return this.#observe(name, document);
    const value = withoutSessions(document, name, ended);
    const at = await store.commit([{ key: lockKey(name), revision }], [{ key: lockKey(name), value }], "release");
    if (at !== null) this.#observe(name, value === null ? null : readDocument({ value, revision: at }));
  }

  async #read(name: string): Promise<Read> {
    const entry = await this.#options.store.get(lockKey(name));
    if (entry === null) return { revision: 0, document: null };
    return { revision: entry.revision, document: readDocument(entry) };
  }

  /** Tells who holds it now and did not, and who did and does not. */
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
      holders: new Map(),
    };
    this.#known.set(name, known);
    return known;
  }

  /** What is neither followed nor waited for nor held is not kept in mind. */
  #forget(name: string): void {
    const known = this.#known.get(name);
    if (known === undefined) return;
    const { underWay, followers, isWaiting, isUncertain } = known;
    if (underWay === 0 && followers === 0 && !isWaiting && !isUncertain) this.#known.delete(name);
  }
}
