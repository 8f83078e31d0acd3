/**
 * Keeps a session alive, and begins another when it is lost. Each acknowledged request confirms the session for nine
 * tenths of its time to live. This time is measured by the local clock, starting before the request was sent; the last
 * tenth allows for clocks running at different speeds. If the time runs out without another confirmation, this process
 * loses its locks, before any other process can acquire them. Such a session is abandoned, even if the engine confirms
 * it later.
 */
import type { Platform } from "../../runtime/platform/platform.ts";
import { sleep } from "../../runtime/platform/sleep.ts";
import { StoreError } from "../store.ts";
import type { History } from "./history.ts";
import type { Retrying } from "./pacing.ts";

export interface UpkeepOptions {
  readonly platform: Pick<Platform, "clock" | "timers">;
  readonly history: History;
  readonly retrying: Retrying;
  readonly ttlMs: number;
  began(session: number): void;
  confirmed(session: number, until: number): void;
  /**
   * Called when a session was lost.
   * @param why the reason passed to its holders. Absent if the session expired or was not confirmed in time.
   */
  lost(session: number, why?: string): void;
  /** Called when the engine has become unusable. */
  failed(error: Error): void;
}

const CERTAIN = 0.9;
const KEEP_ALIVES = 3;

/** This process's session. */
export class Upkeep {
  session: number | null = null;
  until: number | null = null;
  /** The last failed attempt to open or renew a session. */
  lastFailure: StoreError | null = null;
  readonly #options: UpkeepOptions;
  readonly #stopping = new AbortController();
  /** Aborted when the current session has ended, and when `stop` is called. */
  #ended = new AbortController();

  constructor(options: UpkeepOptions) {
    this.#options = options;
  }

  start(): void {
    this.#run().catch((error: unknown) => this.#options.failed(error as Error));
  }

  /** Ends the session if the engine can be reached. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const session = this.#end();
    if (session !== null) await this.#options.history.store.endSession(session).catch(() => {});
  }

  /**
   * Ends the session immediately, because the engine has lost its state.
   * @param why the reason passed to its holders
   */
  abandon(why: string): void {
    const session = this.#end();
    if (session !== null) this.#options.lost(session, why);
  }

  #end(): number | null {
    const { session } = this;
    this.session = null;
    this.until = null;
    this.#ended.abort();
    return session;
  }

  get #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #run(): Promise<void> {
    for (let tries = 0; !this.#isStopped; tries++) {
      if (await this.#begin()) {
        tries = 0;
        await this.#keep();
      } else await this.#options.retrying.pause(tries);
    }
  }

  async #begin(): Promise<boolean> {
    const { platform, history, ttlMs } = this.#options;
    const { store } = history;
    const sentAt = platform.clock.now();
    const session = await this.#unlessUnavailable(store.openSession(ttlMs));
    if (session === null) return false;
    const isBegun = await this.#unlessUnavailable(history.begin().then(() => true));
    const until = sentAt + CERTAIN * ttlMs;
    if (isBegun === null || this.#isStopped || platform.clock.now() >= until) {
      void store.endSession(session).catch(() => {});
      return false;
    }
    this.#ended = new AbortController();
    this.session = session;
    this.#options.began(session);
    this.#confirm(session, until);
    return true;
  }

  #confirm(session: number, until: number): void {
    this.until = until;
    this.#options.confirmed(session, until);
  }

  /** Keeps the session alive. Returns when it is lost. */
  async #keep(): Promise<void> {
    const { platform, history, retrying, ttlMs } = this.#options;
    const session = this.session as number;
    let tries = 0;
    let pauseMs = ttlMs / KEEP_ALIVES;
    for (;;) {
      await this.#wait(pauseMs);
      if (this.session !== session) return; // The session was stopped or abandoned.
      const sentAt = platform.clock.now();
      if (sentAt >= (this.until ?? 0)) break;
      const isKept = await this.#inTime(this.#unlessUnavailable(this.#keepAlive(session)));
      if (this.session !== session) return;
      if (isKept === false || platform.clock.now() >= (this.until ?? 0)) break;
      pauseMs = isKept === null ? 0 : ttlMs / KEEP_ALIVES;
      tries = isKept === null ? tries + 1 : 0;
      if (isKept === null) await retrying.pause(tries);
      else this.#confirm(session, sentAt + CERTAIN * ttlMs);
    }
    this.#end();
    this.#options.lost(session);
    void history.store.endSession(session).catch(() => {});
  }

  /**
   * Renews the session. Throws if the engine was restored, because a session from a backup may be alive although locks
   * that were acquired after the backup are lost.
   */
  async #keepAlive(session: number): Promise<boolean> {
    const { history } = this.#options;
    if (!(await history.store.keepAlive(session))) return false;
    await history.check();
    return true;
  }

  /** Waits for `ms`, or until the time for which the session is confirmed ends. */
  #wait(ms: number, signal: AbortSignal = this.#ended.signal): Promise<void> {
    const { clock, timers } = this.#options.platform;
    const leftMs = (this.until ?? 0) - clock.now();
    return sleep(timers, Math.max(0, Math.min(ms, leftMs)), { ref: false, signal });
  }

  async #inTime(answer: Promise<boolean | null>): Promise<boolean | null> {
    const answered = new AbortController();
    const signal = AbortSignal.any([this.#ended.signal, answered.signal]);
    try {
      return await Promise.race([answer, this.#wait(Number.POSITIVE_INFINITY, signal).then(() => null)]);
    } finally {
      // End the wait. Otherwise each of the many attempts that may fail before the session expires would leave a timer
      // behind.
      answered.abort();
    }
  }

  async #unlessUnavailable<T>(answer: Promise<T>): Promise<T | null> {
    try {
      return await answer;
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      this.lastFailure = error;
      return null;
    }
  }
}
