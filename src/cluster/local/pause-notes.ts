/**
 * Adds pauses of a process to its trace. The supervisor sees a pause slightly late. A pause that the supervisor caused
 * began with its signal, and reactions of other members must not be stamped earlier. The first entry of the process after
 * the pause shows that it was running again, and the consequences must not be stamped earlier.
 */
import { wallClock } from "../../runtime/platform/wall-clock.ts";

/** The difference between the stamps of an event and of its cause. */
const BEFORE_MS = 0.001;

export type PauseNote = (at: number, kind: "pause" | "resume") => void;

interface Pause {
  /** The process did nothing after this time. */
  at: number;
  readonly seenAt: number;
  isNoted: boolean;
}

export class PauseNotes {
  readonly #note: PauseNote;
  readonly #laterMs: number;
  readonly #clock: () => number;
  /** The pause whose end has not been noted. */
  #pause: Pause | null = null;
  /** When it was sent SIGSTOP, unless it has resumed since. */
  #toldAt: number | null = null;
  #didAt = Number.NEGATIVE_INFINITY;
  /** When it was last seen paused: it resumes after this, and before others can receive from it. */
  #stoodAt = 0;

  /** @param laterMs the time within which entries from before a pause or resumption arrive. */
  constructor(note: PauseNote, laterMs: number, clock: () => number = wallClock) {
    this.#note = note;
    this.#laterMs = laterMs;
    this.#clock = clock;
  }

  /** Call it before the signal is sent. */
  signalled(name: NodeJS.Signals): void {
    if (name === "SIGSTOP") this.#toldAt ??= this.#clock();
    if (name === "SIGCONT") this.#toldAt = null;
  }

  seenPaused(): void {
    const seenAt = this.#clock();
    const at = Math.max(this.#toldAt ?? seenAt, this.#didAt + BEFORE_MS);
    const pause = { at: Math.min(at, seenAt), seenAt, isNoted: false };
    this.#pause = pause;
    this.#stoodAt = seenAt;
    setTimeout(() => this.#begin(pause), this.#laterMs).unref();
  }

  seenStillPaused(): void {
    this.#stoodAt = this.#clock();
  }

  seenRunning(): void {
    const pause = this.#pause;
    const at = this.#stoodAt + BEFORE_MS;
    if (pause !== null) setTimeout(() => this.#pause === pause && this.#end(pause, at), this.#laterMs).unref();
  }

  /** The process did something at `at`. Call it before the entry is recorded. */
  did(at: number): void {
    this.#didAt = Math.max(this.#didAt, at);
    if (this.#pause === null) return;
    if (at > this.#pause.seenAt) this.#end(this.#pause, at - BEFORE_MS);
    else if (at >= this.#pause.at) this.#pause.at = Math.min(at + BEFORE_MS, this.#pause.seenAt); // A late entry.
  }

  #begin(pause: Pause): void {
    if (!pause.isNoted) this.#note(pause.at, "pause");
    pause.isNoted = true;
  }

  #end(pause: Pause, at: number): void {
    this.#begin(pause);
    this.#pause = null;
    this.#toldAt = null;
    this.#note(at, "resume");
  }
}
