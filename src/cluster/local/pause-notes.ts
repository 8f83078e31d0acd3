/**
 * When a process stood still, in its trace. The supervisor sees that a little later than it is so: whom it has told to stand
 * still did so then, and what others do about it may not be stamped earlier. The first that the process does after its pause
 * shows that it ran already, and nothing that follows from that may be stamped earlier.
 */
import { wallClock } from "../../runtime/platform/wall-clock.ts";

/** What comes before or after something else is stamped apart by this. */
const BEFORE_MS = 0.001;

export type PauseNote = (at: number, kind: "pause" | "resume") => void;

interface Pause {
  /** It did nothing from then on. */
  at: number;
  readonly seenAt: number;
  isNoted: boolean;
}

export class PauseNotes {
  readonly #note: PauseNote;
  readonly #laterMs: number;
  readonly #clock: () => number;
  /** Until its end is noted. */
  #pause: Pause | null = null;
  /** When it was told to stand still, unless it goes on since then. */
  #toldAt: number | null = null;
  #didAt = Number.NEGATIVE_INFINITY;
  /** When it was last seen to stand still: it runs again after this, and before others can hear from it. */
  #stoodAt = 0;

  /** @param laterMs What the process said before it was seen to stand still, or to run, has arrived after this. */
  constructor(note: PauseNote, laterMs: number, clock: () => number = wallClock) {
    this.#note = note;
    this.#laterMs = laterMs;
    this.#clock = clock;
  }

  /** To be called before that signal is sent. */
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

  /** The process did something at `at`. To be called before that is recorded. */
  did(at: number): void {
    this.#didAt = Math.max(this.#didAt, at);
    if (this.#pause === null) return;
    if (at > this.#pause.seenAt) this.#end(this.#pause, at - BEFORE_MS);
    else if (at >= this.#pause.at) this.#pause.at = Math.min(at + BEFORE_MS, this.#pause.seenAt); // Heard of late.
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
