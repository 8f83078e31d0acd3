/**
 * Limits drawing to one large piece per frame: the text of the page, the log, the layout of the diagram, or its pixels.
 * Each piece fits into a frame, but two of them would delay it.
 */
export type Piece = "words" | "log" | "layout" | "pixels";

export class Turns {
  #frame = Number.NaN;
  #isTaken = false;
  /** The waiting pieces. The one that has waited longest comes first. */
  #queue: Piece[] = [];
  #asked = new Set<Piece>();

  /**
   * Returns whether `piece` may draw in the frame that began at `frame`. A piece that may not draw has to ask again in
   * every frame.
   */
  take(piece: Piece, frame: number): boolean {
    if (frame !== this.#frame) this.#begin(frame);
    this.#asked.add(piece);
    if (!this.#queue.includes(piece)) this.#queue.push(piece);
    if (this.#isTaken || this.#queue[0] !== piece) return false;
    this.#queue.shift();
    this.#isTaken = true;
    return true;
  }

  /** Begins a frame. Removes pieces that have not asked again, because they have nothing left to draw. */
  #begin(frame: number): void {
    this.#queue = this.#queue.filter((piece) => this.#asked.has(piece));
    this.#asked = new Set();
    this.#frame = frame;
    this.#isTaken = false;
  }
}
