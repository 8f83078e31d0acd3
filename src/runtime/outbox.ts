/**
 * A node's external effects, in order. Effects that follow a journal write wait until the write is durable, and so do
 * all later effects. This way, no other process receives a promise that a crash could undo.
 */
import { EnvironmentError } from "../core/errors.ts";
import type { Slot } from "./journal/journal.ts";

type Deed = () => void;
interface Barrier {
  isDown: boolean;
}
/** An effect that is waiting, with a callback for the case that it is never performed. */
interface Awaited {
  readonly deed: Deed;
  readonly drop: Deed;
}

/** The maximum number of effects waiting for the disk. */
const MAX_WAITING = 1_000_000;

const DONE: Deed = () => {};

/** Holds back effects until the records that they depend on are durable. */
export class Outbox {
  readonly #slot: Pick<Slot<never>, "whenDurable"> | null;
  readonly #onFatal: (error: Error) => void;
  #waiting: (Deed | Awaited | Barrier)[] = [];
  #next = 0;
  #hasWritten = false;

  constructor(
    slot: Pick<Slot<never>, "whenDurable"> | null,
    /** Called when an effect fails. */
    onFatal: (error: Error) => void,
  ) {
    this.#slot = slot;
    this.#onFatal = onFatal;
  }

  /**
   * Whether nothing is waiting. If so, an effect can be performed immediately. Otherwise it must be held to preserve
   * the order.
   */
  get isClear(): boolean {
    return this.#waiting.length === 0 && !this.#hasWritten;
  }

  /** Call this after each journal write. Later effects wait for that write. */
  noteWrite(): void {
    this.#hasWritten = true;
  }

  /** @param drop called if the effect is never performed */
  hold(deed: Deed, drop?: Deed): void {
    this.settle();
    if (this.#waiting.length - this.#next >= MAX_WAITING)
      throw new EnvironmentError(
        "slow-disk",
        `the disk is too slow: ${MAX_WAITING} messages and events are waiting for it`,
      );
    this.#waiting.push(drop === undefined ? deed : { deed, drop });
  }

  /** Makes later effects wait until the records written so far are durable. Call this at the end of each step. */
  settle(): void {
    if (!this.#hasWritten) return;
    this.#hasWritten = false;
    const barrier: Barrier = { isDown: false };
    this.#waiting.push(barrier);
    this.#slot?.whenDurable(() => {
      barrier.isDown = true;
      this.#drain();
    });
  }

  /** Drops all waiting effects, as a crash would. */
  clear(): void {
    const dropped = this.#waiting;
    this.#waiting = [];
    this.#next = 0;
    this.#hasWritten = false;
    for (const each of dropped) if (typeof each !== "function" && "drop" in each) each.drop();
  }

  #drain(): void {
    try {
      while (this.#next < this.#waiting.length) {
        const head = this.#waiting[this.#next] as Deed | Awaited | Barrier;
        if (typeof head !== "function" && "isDown" in head && !head.isDown) return this.#forget();
        // Clear the entry, so that an array in the old generation does not keep the effect alive.
        this.#waiting[this.#next] = DONE;
        this.#next += 1;
        if (typeof head === "function") head();
        else if ("deed" in head) head.deed();
      }
      this.clear();
    } catch (error) {
      this.#onFatal(error as Error);
    }
  }

  /** Drops performed effects once they make up more than half of the list. */
  #forget(): void {
    if (this.#next * 2 < this.#waiting.length) return;
    this.#waiting.splice(0, this.#next);
    this.#next = 0;
  }
}
