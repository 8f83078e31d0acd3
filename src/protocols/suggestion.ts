/** "Did you mean": a known name that is close to a misspelled one. */

/** ` (did you mean crash?)` if a known name is close to this one, otherwise empty. */
export function suggestion(word: string, known: readonly string[]): string {
  const distances = known.map((each) => ({ each, distance: editDistance(word.toLowerCase(), each.toLowerCase()) }));
  const [best] = distances.sort((a, b) => a.distance - b.distance);
  return best !== undefined && best.distance <= Math.max(1, Math.floor(word.length / 3))
    ? ` (did you mean ${best.each}?)`
    : "";
}

/** Levenshtein's distance, row by row. Two swapped neighbors count as one mistake, the most frequent one. */
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
