/**
 * When a process stood still, in its trace. The supervisor sees that a little later than it is so; the first that the process
 * does after its pause shows that it ran already, and nothing that follows from that may be stamped earlier.
 */
import { wallClock } from "../../runtime/platform/wall-clock.ts";

/** What comes before or after something else is stamped apart by this. */
const BEFORE_MS = 0.001;

export type PauseNote = (at: number, kind: "pause" | "resume") => void;

export class PauseNotes {
  /** Until its end is noted. */
  private pause: { readonly at: number; isNoted: boolean } | null = null;
  /** When it was last seen to stand still: it runs again after this, and before others can hear from it. */
  private stoodAt = 0;

  /** @param laterMs What the process said before it was seen to stand still, or to run, has arrived after this. */
  constructor(
    private readonly note: PauseNote,
    private readonly laterMs: number,
    private readonly clock: () => number = wallClock,
  ) {}

  seenPaused(): void {
    const pause = { at: this.clock(), isNoted: false };
    this.pause = pause;
    this.stoodAt = pause.at;
    setTimeout(() => this.begin(pause), this.laterMs).unref();
  }

  seenStillPaused(): void {
    this.stoodAt = this.clock();
  }

  seenRunning(): void {
    const { pause } = this;
    const at = this.stoodAt + BEFORE_MS;
    if (pause !== null) setTimeout(() => this.pause === pause && this.end(pause, at), this.laterMs).unref();
  }

  /** The process did something at `at`. To be called before that is recorded. */
  did(at: number): void {
    if (this.pause !== null && at > this.pause.at) this.end(this.pause, at - BEFORE_MS);
  }

  private begin(pause: { readonly at: number; isNoted: boolean }): void {
    if (!pause.isNoted) this.note(pause.at, "pause");
    pause.isNoted = true;
  }

  private end(pause: { readonly at: number; isNoted: boolean }, at: number): void {
    this.begin(pause);
    this.pause = null;
    this.note(at, "resume");
  }
}
