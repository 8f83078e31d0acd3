/** Which of the words at the lines of a topology stand: those that run over nothing. */
import type { Place } from "./places.ts";

export interface Word {
  readonly text: string;
  readonly at: Place;
}

const [LETTER_PX, LINE_PX] = [6, 13];

/** In their order: what comes first stands. @param nodes whose circles stay free, all of this radius */
export function standing<T extends Word>(words: readonly T[], nodes: readonly Place[], radius: number): T[] {
  const kept: T[] = [];
  for (const word of words) {
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
