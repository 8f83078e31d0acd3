/**
 * At most one large piece of drawing per frame: the text of the page, the log, the layout of the diagram, or its pixels.
 * Each fits into a frame alone; two of them would delay it.
 */
export type Piece = "words" | "log" | "layout" | "pixels";

export class Turns {
  #frame = Number.NaN;
  #isTaken = false;
  /** Waiting pieces, the longest wait first. */
  #queue: Piece[] = [];
  #asked = new Set<Piece>();

  /** Whether `piece` may draw in the frame that began at `frame`. A refused piece requests again in every frame. */
  take(piece: Piece, frame: number): boolean {
    if (frame !== this.#frame) this.#begin(frame);
    this.#asked.add(piece);
    if (!this.#queue.includes(piece)) this.#queue.push(piece);
    if (this.#isTaken || this.#queue[0] !== piece) return false;
    this.#queue.shift();
    this.#isTaken = true;
    return true;
  }

  /** A piece that did not request again has nothing left to draw, and does not delay the others. */
  #begin(frame: number): void {
    this.#queue = this.#queue.filter((piece) => this.#asked.has(piece));
    this.#asked = new Set();
    this.#frame = frame;
    this.#isTaken = false;
  }
}
