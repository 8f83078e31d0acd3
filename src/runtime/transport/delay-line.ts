/**
 * Messages to one peer that the fault injector is delaying, in order. They are stored as bytes, because a handler may
 * later change data that a message refers to.
 */
import type { Platform, Timer } from "../platform/platform.ts";

export class DelayLine {
  readonly #platform: Pick<Platform, "clock" | "timers">;
  readonly #release: (message: Buffer) => void;
  /** The total size of the delayed messages. */
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

  /** Sends the message after `delayMs`, but not before the messages that are already being delayed. */
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

/** How early timers may expire. */
const CLOCK_GRAIN_MS = 0.5;
