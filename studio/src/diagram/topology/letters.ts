/** Which of the words at the lines of a topology stand: those that run over nothing. */
import { textWidth } from "../../../../src/trace/picture/boxes.ts";
import type { Place } from "./places.ts";

export interface Word {
  readonly text: string;
  readonly at: Place;
}

const [EDGE_PX, FONT_PX] = [2, 11];

/** The nearest middle of words with which none of them is cut; of what is wider than the picture the beginning is seen. */
export const inside = (middle: number, half: number, room: number): number =>
  Math.max(half + EDGE_PX, Math.min(middle, room - half - EDGE_PX));

const [LETTER_PX, LINE_PX] = [6, 13];

/**
 * In their order: what comes first stands. Words that would reach over an edge are moved inwards.
 * @param nodes whose circles stay free, all of this radius
 * @param room how wide the picture is
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
