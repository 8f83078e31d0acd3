/** The current place according to the address, and navigation between places. */
import { hashOf, type Place, pageProblem, placeOf, type Words } from "./engine/recipe.ts";

class Where {
  place = $state.raw<Place>(placeOf(location.hash));
  /** Why the address does not name a page. Empty if it does. */
  problem = $state(pageProblem(location.hash));
  /**
   * The cursor, if it has moved since the place was entered. Moving it does not cause a new run, so it is not part of
   * the place.
   */
  #noted = $state.raw<Words>({});
  /** The last hash that was read. Browsers report changes with a delay. */
  #hash = location.hash;

  constructor() {
    addEventListener("hashchange", () => {
      if (location.hash !== this.#hash) this.#read();
    });
  }

  /** The words of the place, with the cursor's step. */
  get wordsAtCursor(): Words {
    return { ...this.place.words, ...this.#noted };
  }

  /**
   * Goes to a place. This takes effect immediately, so that the next key applies to the new place. Going to the current
   * place restarts it.
   */
  go(page: Place["page"], words: Words): void {
    location.hash = hashOf({ page, words });
    this.#read();
  }

  /** Stores the cursor in the link without adding an entry to the browser's history. */
  noteCursor(step: number): void {
    if (location.hash !== this.#hash) return; // The address already belongs to a new run.
    const { page, words } = placeOf(location.hash);
    this.#noted = { at: String(step) };
    history.replaceState(null, "", hashOf({ page, words: { ...words, ...this.#noted } }));
    this.#hash = location.hash;
  }

  /** Returns the link to the same run with the cursor at the given step. */
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
