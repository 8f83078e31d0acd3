/**
 * How much room a text takes. Nobody knows the reader's fonts, so this errs on the wide side of the common sans-serif
 * ones, DejaVu Sans included.
 */

/** In pixels, for a font of so many pixels. */
export function textWidth(text: string, fontPx: number): number {
  return [...text].reduce((sum, letter) => sum + emOf(letter), 0) * fontPx;
}

function emOf(letter: string): number {
  if (NARROW.has(letter)) return 0.36;
  if (WIDE.has(letter)) return 0.98;
  if (letter > "\u2e80") return 1.05;
  return letter >= "A" && letter <= "Z" ? 0.72 : 0.63;
}

const NARROW = new Set("iljtfr.,:;'|()[]! ");
const WIDE = new Set("mwMW@%…–—");
