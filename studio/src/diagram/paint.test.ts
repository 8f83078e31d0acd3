import { expect, test } from "vitest";
import type { Letter } from "./lettering.ts";
import { paintWords, VEIL } from "./paint.ts";
import type { Surface } from "./surface.ts";

/** Words at the middle of an arrow that begins before the cursor, at 100, and ends after it; before it; and after it. */
const letters = [
  { text: "under way", x: 150, of: 90 },
  { text: "arrived", x: 70, of: 40 },
  { text: "to come", x: 180, of: 160 },
].map((letter): Letter => ({ ...letter, key: letter.text, y: 0, radians: 0, style: "arrow", colour: "--ink" }));

function wordsUnder(veil: number): string[] {
  const shown: string[] = [];
  const surface = { words: (text: string) => void shown.push(text) } as unknown as Surface;
  paintWords(surface, { letters }, { theme: () => "", until: 100, veil });
  return shown;
}

test("words of what is still to come are not there; where all of it is hidden, neither are those beside an arrow's hidden part", () => {
  expect(wordsUnder(VEIL)).toEqual(["under way", "arrived"]);
  expect(wordsUnder(1)).toEqual(["arrived"]);
});
