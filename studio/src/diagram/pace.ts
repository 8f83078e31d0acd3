/**
 * How often a picture is redrawn during a drag. A picture that is ready in time for its frame may be redrawn in each frame.
 * After a late one, the picture is only moved and scaled for a while, so that few frames are late.
 */

/** Frames come 60 times a second. */
const IN_TIME_MS = 20;
/** After a late frame, drawing pauses for this multiple of its duration. */
const REST = 10;

export class Pace {
  #drewAt: number | null = null;
  #restsUntil = Number.NEGATIVE_INFINITY;

  /** Call it for each frame during a drag. Returns whether the picture may be drawn in this frame. */
  allows(now: number): boolean {
    if (this.#drewAt !== null) {
      const took = now - this.#drewAt;
      if (took > IN_TIME_MS) this.#restsUntil = now + REST * took;
      this.#drewAt = null;
    }
    return now >= this.#restsUntil;
  }

  /** The picture is drawn in the frame that began then. */
  drew(now: number): void {
    this.#drewAt = now;
  }
}
