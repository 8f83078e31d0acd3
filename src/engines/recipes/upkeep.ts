/**
 * Keeps a session alive, and begins the next one when it is lost. The session counts as confirmed from before the
 * acknowledged request was sent, by the local clock, until a tenth before the engine may expire it. So clocks may run at
 * different speeds. By then its locks are lost here, before any other process can acquire them. A session that was not
 * confirmed in time is given up, even if the engine confirms it later.
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
  /** @param why the reason for its holders, unless it was not confirmed in time */
  lost(session: number, why?: string): void;
  /** The engine is unusable from now on. */
  failed(error: Error): void;
}

const CERTAIN = 0.9;
const KEEP_ALIVES = 3;

export class Upkeep {
  session: number | null = null;
  until: number | null = null;
  /** Why the last failed call to the engine failed. */
  lastFailure: StoreError | null = null;
  readonly #options: UpkeepOptions;
  readonly #stopping = new AbortController();
  /** Aborted when the current session has ended, and when this is stopped. */
  #ended = new AbortController();

  constructor(options: UpkeepOptions) {
    this.#options = options;
  }

  start(): void {
    this.#run().catch((error: unknown) => this.#options.failed(error as Error));
  }

  /** Ends the session if the engine is reachable. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const session = this.#end();
    if (session !== null) await this.#options.history.store.endSession(session).catch(() => {});
  }

  /** The engine has lost the session's state: the session ends at once. @param why the reason for its holders */
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

  /** Returns when the session is lost. */
  async #keep(): Promise<void> {
    const { platform, history, retrying, ttlMs } = this.#options;
    const session = this.session as number;
    let tries = 0;
    let pauseMs = ttlMs / KEEP_ALIVES;
    for (;;) {
      await this.#wait(pauseMs);
      if (this.session !== session) return; // Stopped or abandoned.
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

  /** A session restored from a backup may be alive, though locks acquired since then are lost. */
  async #keepAlive(session: number): Promise<boolean> {
    const { history } = this.#options;
    if (!(await history.store.keepAlive(session))) return false;
    await history.check();
    return true;
  }

  /** Waits no longer than the session is confirmed. */
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
      answered.abort(); // Ends the wait: many attempts may fail before the session expires, and each would leave a timer.
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
