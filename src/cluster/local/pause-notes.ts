/**
 * Adds a process's pauses to its trace, at plausible times. The supervisor detects a pause slightly late. If the
 * supervisor caused the pause, the pause begins when the signal was sent, so that other members' reactions never have
 * earlier timestamps. The pause ends before the process's first later entry, so that the consequences of resuming never
 * have earlier timestamps either.
 */
import { wallClock } from "../../runtime/platform/wall-clock.ts";

/** The gap between the timestamps of a pause or resume and of the adjacent event. */
const BEFORE_MS = 0.001;

/** Receives a pause or resume, with its time. */
export type PauseNote = (at: number, kind: "pause" | "resume") => void;

interface Pause {
  /** When the pause began. Later entries from the process move it forward. */
  at: number;
  readonly seenAt: number;
  isNoted: boolean;
}

/** Inserts pauses between the entries of a trace. */
export class PauseNotes {
  readonly #note: PauseNote;
  readonly #laterMs: number;
  readonly #clock: () => number;
  /** The pause whose end has not been recorded yet. */
  #pause: Pause | null = null;
  /** When SIGSTOP was sent to the process. Null if it has resumed since. */
  #toldAt: number | null = null;
  #didAt = Number.NEGATIVE_INFINITY;
  /**
   * The last time the process was seen to be paused. It must have resumed after this, but before other members could
   * receive from it.
   */
  #stoodAt = 0;

  /** @param laterMs the maximum delay of entries from before a pause or resume */
  constructor(note: PauseNote, laterMs: number, clock: () => number = wallClock) {
    this.#note = note;
    this.#laterMs = laterMs;
    this.#clock = clock;
  }

  /** Called before the signal is sent. */
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

  /** Called when the process did something at `at`, before the entry is recorded. */
  did(at: number): void {
    this.#didAt = Math.max(this.#didAt, at);
    if (this.#pause === null) return;
    if (at > this.#pause.seenAt) this.#end(this.#pause, at - BEFORE_MS);
    // The entry arrived late.
    else if (at >= this.#pause.at) this.#pause.at = Math.min(at + BEFORE_MS, this.#pause.seenAt);
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
