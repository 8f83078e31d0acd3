/**
 * One large piece of drawing a frame: the words of the page, the log, the layout of the diagram, the pixels below it. Each
 * alone has time enough; two of them make a frame late.
 */
export type Piece = "words" | "log" | "layout" | "pixels";

export class Turns {
  #frame = Number.NaN;
  #isTaken = false;
  /** Who waits, the longest first. */
  #queue: Piece[] = [];
  #asked = new Set<Piece>();

  /** Whether it is the turn of `piece` in the frame that began at `frame`. Refused, it asks again with every frame. */
  take(piece: Piece, frame: number): boolean {
    if (frame !== this.#frame) this.#begin(frame);
    this.#asked.add(piece);
    if (!this.#queue.includes(piece)) this.#queue.push(piece);
    if (this.#isTaken || this.#queue[0] !== piece) return false;
    this.#queue.shift();
    this.#isTaken = true;
    return true;
  }

  /** A diagram that did not ask again has nothing to draw any more, and keeps no other waiting. */
  #begin(frame: number): void {
    this.#queue = this.#queue.filter((piece) => this.#asked.has(piece));
    this.#asked = new Set();
    this.#frame = frame;
    this.#isTaken = false;
  }
}
