/**
 * What a node does to the world outside, in order. What follows a write to the journal waits until that is durable, and
 * so does all that comes later: nobody hears of a promise that a crash could take back.
 */
import { EnvironmentError } from "../core/errors.ts";
import type { Slot } from "./journal/journal.ts";

type Deed = () => void;
interface Barrier {
  isDown: boolean;
}
/** What somebody waits for, who is told as well if it is never done. */
interface Awaited {
  readonly deed: Deed;
  readonly drop: Deed;
}

/** How many deeds wait for the disk at most. */
const MAX_WAITING = 1_000_000;

const DONE: Deed = () => {};

export class Outbox {
  readonly #slot: Pick<Slot<never>, "whenDurable"> | null;
  readonly #onFatal: (error: Error) => void;
  #waiting: (Deed | Awaited | Barrier)[] = [];
  #next = 0;
  #hasWritten = false;

  constructor(
    slot: Pick<Slot<never>, "whenDurable"> | null,
    /** A deed could not be done. */
    onFatal: (error: Error) => void,
  ) {
    this.#slot = slot;
    this.#onFatal = onFatal;
  }

  /** Nothing waits: a deed may be done at once. Otherwise it has to be held, or it would overtake. */
  get isClear(): boolean {
    return this.#waiting.length === 0 && !this.#hasWritten;
  }

  /** Something was journalled: what is done from now on waits for that. */
  noteWrite(): void {
    this.#hasWritten = true;
  }

  /** @param drop called if the deed is never done */
  hold(deed: Deed, drop?: Deed): void {
    this.settle();
    if (this.#waiting.length - this.#next >= MAX_WAITING)
      throw new EnvironmentError("slow-disk", `the disk is too slow: ${MAX_WAITING} messages and events wait for it`);
    this.#waiting.push(drop === undefined ? deed : { deed, drop });
  }

  /** At the end of a step: what it has journalled last is waited for, too. */
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

  /** As after a crash: what waits is never done. */
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
        this.#waiting[this.#next] = DONE; // The list, which may be old, keeps nothing of it.
        this.#next += 1;
        if (typeof head === "function") head();
        else if ("deed" in head) head.deed();
      }
      this.clear();
    } catch (error) {
      this.#onFatal(error as Error);
    }
  }

  /** What has been done, once there is more of it than of what waits. */
  #forget(): void {
    if (this.#next * 2 < this.#waiting.length) return;
    this.#waiting.splice(0, this.#next);
    this.#next = 0;
  }
}
