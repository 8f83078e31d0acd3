/** The place that the address names, and ways to another. */
import { hashOf, type Place, placeOf, type Words } from "./engine/recipe.ts";

class Where {
  place = $state.raw<Place>(placeOf(location.hash));
  /** What the address holds, unless it changes: that is told of only later. */
  #hash = location.hash;

  constructor() {
    addEventListener("hashchange", () => {
      this.#hash = location.hash;
      this.place = placeOf(location.hash);
    });
  }

  go(page: Place["page"], words: Words): void {
    location.hash = hashOf({ page, words });
  }

  /** Notes the cursor, so that the link holds it; there is nothing to go back to. */
  noteCursor(step: number): void {
    if (location.hash !== this.#hash) return; // It is that of another run already.
    const { page, words } = placeOf(location.hash);
    history.replaceState(null, "", hashOf({ page, words: { ...words, at: String(step) } }));
    this.#hash = location.hash;
  }
}

export const where = new Where();
