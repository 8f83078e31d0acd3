/**
 * What the fault injector holds back from one peer, in order. Messages wait as bytes, since a handler may change later what
 * a message refers to.
 */
import type { Platform, Timer } from "../platform/platform.ts";

export class DelayLine {
  readonly #platform: Pick<Platform, "clock" | "timers">;
  readonly #release: (message: Buffer) => void;
  /** Bytes that wait. */
  bytes = 0;
  #held: { readonly due: number; readonly message: Buffer }[] = [];
  #timer: Timer | null = null;

  constructor(platform: Pick<Platform, "clock" | "timers">, release: (message: Buffer) => void) {
    this.#platform = platform;
    this.#release = release;
  }

  get length(): number {
    return this.#held.length;
  }

  /** Releases the message `delayMs` from now, and not before those that wait already. */
  hold(message: Buffer, delayMs: number): void {
    const now = this.#platform.clock.now();
    const due = Math.max(now + delayMs, this.#held.at(-1)?.due ?? 0);
    this.#held.push({ due, message });
    this.bytes += message.length;
    this.#timer ??= this.#platform.timers.after(due - now, () => this.#releaseDue());
  }

  clear(): void {
    this.#platform.timers.cancel(this.#timer);
    this.#timer = null;
    this.#held = [];
    this.bytes = 0;
  }

  #releaseDue(): void {
    const now = this.#platform.clock.now();
    const firstToStay = this.#held.findIndex(({ due }) => due > now + CLOCK_GRAIN_MS);
    for (const { message } of this.#held.splice(0, firstToStay < 0 ? this.#held.length : firstToStay)) {
      this.bytes -= message.length;
      this.#release(message);
    }
    const next = this.#held[0];
    this.#timer = next === undefined ? null : this.#platform.timers.after(next.due - now, () => this.#releaseDue());
  }
}

/** Timers may run out so much early. */
const CLOCK_GRAIN_MS = 0.5;
