/** The place that the address names, and ways to another. */
import { hashOf, type Place, pageProblem, placeOf, type Words } from "./engine/recipe.ts";

class Where {
  place = $state.raw<Place>(placeOf(location.hash));
  /** Why the address names no page; empty if it names one. */
  problem = $state(pageProblem(location.hash));
  /** Where the cursor has gone since; it makes no run anew, so it is no part of the place. */
  #noted = $state.raw<Words>({});
  /** What was read of the address: browsers tell of a change only later. */
  #hash = location.hash;

  constructor() {
    addEventListener("hashchange", () => {
      if (location.hash !== this.#hash) this.#read();
    });
  }

  /** Those of the place, with the step at which the cursor stands. */
  get wordsAtCursor(): Words {
    return { ...this.place.words, ...this.#noted };
  }

  /** Is there at once, so that the next key acts on what this one came to. Where one is already, all begins anew. */
  go(page: Place["page"], words: Words): void {
    location.hash = hashOf({ page, words });
    this.#read();
  }

  /** Notes the cursor, so that the link holds it; there is nothing to go back to. */
  noteCursor(step: number): void {
    if (location.hash !== this.#hash) return; // It is that of another run already.
    const { page, words } = placeOf(location.hash);
    this.#noted = { at: String(step) };
    history.replaceState(null, "", hashOf({ page, words: { ...words, ...this.#noted } }));
    this.#hash = location.hash;
  }

  /** The link that makes the same again, with its cursor at a step. */
  linkAt(step: number): string {
    this.noteCursor(step);
    return location.href;
  }

  #read(): void {
    this.#hash = location.hash;
    this.#noted = {};
    this.place = placeOf(location.hash);
    this.problem = pageProblem(location.hash);
  }
}

export const where = new Where();
