/**
 * The lock as this process uses it: who waits here, in order, and the grant that one of them holds. The algorithm sees a
 * node that asks or does not ask; who of several asked first is settled here.
 */
import { MAX_WAIT_MS } from "../../runtime/longest-wait.ts";
import { measure } from "../../runtime/metrics.ts";
import type { AcquireOptions, Grant } from "./api.ts";
import { type CoordinationCode, CoordinationError } from "./coordination-error.ts";
import type { AlgorithmEvent, Engine, LocalSide } from "./engine.ts";
import { HeldGrant } from "./held-grant.ts";
import { duration, type Rules, requireOptions, signal } from "./known-options.ts";
import { onAbort } from "./on-abort.ts";
import { isGivenUp } from "./tenure.ts";

interface Waiter {
  readonly granted: (grant: HeldGrant) => void;
  readonly refused: (error: CoordinationError) => void;
}

export class LocalMutex implements LocalSide {
  readonly name: string;
  readonly algorithm: string;
  readonly #engine: Engine;
  /** In the order in which they came. */
  readonly #waiting = new Set<Waiter>();
  #held: HeldGrant | null = null;
  #closed: CoordinationError | null = null;
  #isRetired = false;

  constructor(engine: Engine) {
    this.#engine = engine;
    this.name = engine.setting.name;
    this.algorithm = engine.setting.algorithm;
  }

  get isUsed(): boolean {
    return this.#waiting.size > 0 || this.#held !== null;
  }

  get isRetired(): boolean {
    return this.#isRetired;
  }

  retire(): void {
    this.#isRetired = true;
  }

  get held() {
    const isHeld = this.#held?.isHeld ?? false;
    return { token: this.#held?.token ?? null, isHeld, waiting: this.#waiting.size };
  }

  async acquire(options: AcquireOptions = {}): Promise<Grant> {
    requireOptions("acquire", options, acquireRules);
    const { timeoutMs, signal } = options;
    if (this.#closed !== null) throw this.#never(this.#closed.code, this.#closed.message);
    if (signal?.aborted === true) throw this.#aborted(signal);
    if (this.#waiting.size >= this.#engine.maxWaiters)
      throw this.#never("too-many-waiters", `${this.#engine.maxWaiters} wait for ${this.#what} here, and no more may`);
    return this.#wait(timeoutMs, signal);
  }

  onEvent(event: AlgorithmEvent, until: number | null): void {
    const { token } = event;
    if (event.type === "entered") return this.#entered(token as number);
    const held = this.#held;
    if (held === null || held.token !== token) return; // Of a grant that was given back.
    if (event.type === "confirmed") held.confirm(until);
    else if (event.type === "lost") {
      held.lose();
      this.#over();
    }
  }

  close(reason: CoordinationError): void {
    this.#closed = reason;
    const isAskedFor = this.#waiting.size > 0 || this.#held !== null;
    for (const waiter of this.#waiting) waiter.refused(this.#never(reason.code, reason.message));
    this.#held?.end(reason);
    this.#held = null;
    // Also if a grant is on its way: nobody will wait for one any more.
    if (isAskedFor) this.#engine.command({ type: "exit" });
  }

  #wait(timeoutMs: number | undefined, signal: AbortSignal | undefined): Promise<HeldGrant> {
    const { clock, timers } = this.#engine.platform;
    return new Promise((resolve, reject) => {
      const done = (): void => {
        timers.cancel(timer);
        forget();
        this.#waiting.delete(waiter);
      };
      const began = clock.now();
      // The caller runs after this turn, which may be long or lose the grant. Until then it keeps its place.
      const look = (grant: HeldGrant): void => {
        if (!this.#waiting.has(waiter)) return void grant.release();
        if (!grant.isHeld) return;
        done();
        measure(this.#engine.counts.locks.acquiring, clock.now() - began);
        resolve(grant);
      };
      const waiter: Waiter = {
        granted: (grant) => queueMicrotask(() => look(grant)),
        refused(error) {
          done();
          reject(error);
        },
      };
      const abandon = (error: CoordinationError): void => {
        waiter.refused(error);
        this.#withdraw();
      };
      const late = `${this.#what} was not acquired within ${timeoutMs} ms`;
      const abort = (): void => abandon(this.#aborted(signal as AbortSignal));
      const forget = onAbort(signal, abort);
      const timer =
        timeoutMs === undefined || timeoutMs > MAX_WAIT_MS
          ? null
          : timers.after(timeoutMs, () => {
              this.#engine.counts.locks.timedOut += 1;
              abandon(this.#never("acquire-timeout", late));
            });
      this.#waiting.add(waiter);
      this.#ask();
    });
  }

  #entered(token: number): void {
    const [first] = this.#waiting;
    if (first === undefined) return this.#engine.command({ type: "exit" }); // Too late: nobody waits any more.
    this.#held?.lose();
    const held: HeldGrant = new HeldGrant({
      platform: this.#engine.platform,
      token,
      name: this.name,
      what: this.#what,
      over: () => this.#over(held),
      onEnd: (reason) => this.#count(reason),
    });
    this.#held = held;
    this.#engine.counts.locks.acquired += 1;
    first.granted(held);
  }

  #count(reason: CoordinationError): void {
    this.#engine.counts.locks[isGivenUp(reason) ? "released" : "lost"] += 1;
  }

  /** The present grant has ended, one way or the other: gives it back, and asks for the next who waits. */
  #over(grant: HeldGrant | null = this.#held): void {
    if (grant === null || grant !== this.#held) return;
    this.#giveBack();
    this.#ask();
  }

  #giveBack(): void {
    if (this.#held === null) return;
    this.#held = null;
    this.#engine.command({ type: "exit" });
  }

  #ask(): void {
    if (this.#waiting.size > 0 && this.#held === null) this.#engine.command({ type: "enter" });
  }

  /** Nobody wants in any more. If a grant may be on its way already, it is given back when it is here. */
  #withdraw(): void {
    const { isSettled } = this.#engine;
    if (this.#waiting.size === 0 && this.#held === null && isSettled) this.#engine.command({ type: "exit" });
  }

  get #what(): string {
    return `the lock "${this.name}"`;
  }

  #aborted(signal: AbortSignal): CoordinationError {
    return this.#never("acquire-aborted", `${this.#what} was not acquired: the wait was aborted`, signal.reason);
  }

  #never(code: CoordinationCode, message: string, cause?: unknown): CoordinationError {
    return new CoordinationError(code, "never-acquired", message, cause === undefined ? {} : { cause });
  }
}

export const acquireRules: Rules<AcquireOptions> = {
  timeoutMs: { ...duration, wanted: `${duration.wanted}, since no lock on a network is had without waiting` },
  signal,
};
