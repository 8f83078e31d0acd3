/** The current place, as the address names it, and navigation. */
import { hashOf, type Place, pageProblem, placeOf, type Words } from "./engine/recipe.ts";

class Where {
  place = $state.raw<Place>(placeOf(location.hash));
  /** Why the address names no page; empty if it names one. */
  problem = $state(pageProblem(location.hash));
  /** The cursor's later position. It does not cause a new run, so it is not part of the place. */
  #noted = $state.raw<Words>({});
  /** The part of the address that was read: browsers report a change only later. */
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

  /** Takes effect at once, so that the next key acts on the new place. Going to the current place begins again. */
  go(page: Place["page"], words: Words): void {
    location.hash = hashOf({ page, words });
    this.#read();
  }

  /** Records the cursor in the link, without an entry in the browser's history. */
  noteCursor(step: number): void {
    if (location.hash !== this.#hash) return; // The address already belongs to another run.
    const { page, words } = placeOf(location.hash);
    this.#noted = { at: String(step) };
    history.replaceState(null, "", hashOf({ page, words: { ...words, ...this.#noted } }));
    this.#hash = location.hash;
  }

  /** The link to the same run, with its cursor at a step. */
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
