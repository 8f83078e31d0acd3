/**
 * How often a picture is drawn anew while hands move it. One that is drawn in time for its frame may be drawn in each; one that
 * comes late is only moved and stretched for a while, so that few frames are late.
 */

/** Frames come 60 times a second. */
const IN_TIME_MS = 20;
/** For so many times as long as its frame took nothing is drawn. */
const REST = 10;

export class Pace {
  #drewAt: number | null = null;
  #restsUntil = Number.NEGATIVE_INFINITY;

  /** To be told of each frame that begins while hands move. Whether the picture may be drawn in this one. */
  allows(now: number): boolean {
    if (this.#drewAt !== null) {
      const took = now - this.#drewAt;
      if (took > IN_TIME_MS) this.#restsUntil = now + REST * took;
      this.#drewAt = null;
    }
    return now >= this.#restsUntil;
  }

  /** It is drawn in the frame that began then. */
  drew(now: number): void {
    this.#drewAt = now;
  }
}
