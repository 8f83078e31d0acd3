/** Suggests a known name that is close to a misspelled one, for "did you mean" hints. */

/** The minimum length of a prefix that suggests a name. */
const MIN_PREFIX = 3;

/**
 * Returns a hint such as ` (did you mean crash?)` if a known name is close to `word` or, failing that, begins with it.
 * Otherwise, returns an empty string.
 */
export function suggestion(word: string, known: readonly string[]): string {
  const given = word.toLowerCase();
  const distances = known.map((each) => ({ each, distance: editDistance(given, each.toLowerCase()) }));
  const [best] = distances.sort((a, b) => a.distance - b.distance);
  const isClose = best !== undefined && best.distance <= Math.max(1, Math.floor(word.length / 3));
  const longer = known.filter((each) => given.length >= MIN_PREFIX && each.toLowerCase().startsWith(given));
  const meant = isClose ? best.each : longer.toSorted((a, b) => a.length - b.length)[0];
  return meant === undefined ? "" : ` (did you mean ${meant}?)`;
}

/**
 * Computes the Levenshtein distance row by row. Swapping two adjacent letters, the most common mistake, counts as one
 * edit.
 */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  let above: number[] = [];
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      const replaced = (row[j] as number) + (b[j] === letter ? 0 : 1);
      const isSwapped = i > 0 && b[j - 1] === letter && b[j] === a[i - 1];
      const swapped = isSwapped ? (above[j - 1] as number) + 1 : Number.POSITIVE_INFINITY;
      next.push(Math.min(replaced, swapped, (row[j + 1] as number) + 1, (next[j] as number) + 1));
    }
    above = row;
    row = next;
  }
  return row[b.length] as number;
}
