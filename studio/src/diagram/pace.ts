/**
 * Limits how often a picture is redrawn during a drag. If drawing is fast enough, the picture is redrawn in every
 * frame. After a late frame, the picture is only moved and scaled for a while, so that few frames are late.
 */

/** The maximum duration of a frame that is on time, at 60 frames per second. */
const IN_TIME_MS = 20;
/** After a late frame, drawing pauses for this multiple of the frame's duration. */
const REST = 10;

export class Pace {
  #drewAt: number | null = null;
  #restsUntil = Number.NEGATIVE_INFINITY;

  /** Returns whether the picture may be drawn in this frame. Call it in every frame during a drag. */
  allows(now: number): boolean {
    if (this.#drewAt !== null) {
      const took = now - this.#drewAt;
      if (took > IN_TIME_MS) this.#restsUntil = now + REST * took;
      this.#drewAt = null;
    }
    return now >= this.#restsUntil;
  }

  /** Records a drawing. Call it in the frame that draws the picture, with the start time of the frame. */
  drew(now: number): void {
    this.#drewAt = now;
  }
}
