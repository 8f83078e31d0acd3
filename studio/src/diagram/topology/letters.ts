/** Selects which line labels in a topology to show, so that they do not overlap anything. */
import { textWidth } from "../../../../src/trace/picture/boxes.ts";
import type { Place } from "./places.ts";

export interface Word {
  readonly text: string;
  readonly at: Place;
}

const [EDGE_PX, FONT_PX] = [2, 11];

/**
 * Returns the nearest center position at which the text is not cut off. If the text is wider than the picture, its
 * beginning remains visible.
 */
export const inside = (middle: number, half: number, room: number): number =>
  Math.max(half + EDGE_PX, Math.min(middle, room - half - EDGE_PX));

const [LETTER_PX, LINE_PX] = [6, 13];

/**
 * Selects labels in the given order, so that earlier ones have priority. Text that would cross an edge is moved inward.
 * @param nodes the centers of circles to keep free, all with this radius
 * @param room the width of the picture
 */
export function standing<T extends Word>(
  words: readonly T[],
  nodes: readonly Place[],
  radius: number,
  room: number,
): T[] {
  const kept: T[] = [];
  for (const given of words) {
    const word = { ...given, at: { x: inside(given.at.x, textWidth(given.text, FONT_PX) / 2, room), y: given.at.y } };
    const width = (of: Word) => of.text.length * LETTER_PX;
    const isFree =
      nodes.every(
        ({ x, y }) => Math.abs(x - word.at.x) > radius + width(word) / 2 - 4 || Math.abs(y - word.at.y) > radius + 7,
      ) &&
      kept.every(({ at, ...other }) => {
        const room = (width(word) + width({ at, ...other })) / 2 + 4;
        return Math.abs(at.x - word.at.x) > room || Math.abs(at.y - word.at.y) > LINE_PX;
      });
    if (isFree) kept.push(word);
  }
  return kept;
}
