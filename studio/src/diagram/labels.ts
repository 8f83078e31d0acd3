/** Decides which marks have room for their label: the weightier first, and none over another or over a mark. */

export interface Labelled {
  readonly x: number;
  readonly y: number;
  readonly label: string;
  readonly weight: number;
}

/** From a mark to its label, and between labels. */
const GAP_PX = 12;
/** Marks so close that they look like one do not keep each other from being labelled. */
const BUNDLE_PX = 4;

export function placeLabels<M extends Labelled>(
  marks: readonly M[],
  characterPx: number,
): (M & { labelled: boolean })[] {
  const rows = [...new Set(marks.map(({ y }) => y))].map((y) => marks.filter((mark) => mark.y === y));
  const labelled = new Set(rows.flatMap((row) => labelledIn(row, characterPx)));
  return marks.map((mark) => ({ ...mark, labelled: labelled.has(mark) }));
}

function labelledIn<M extends Labelled>(row: readonly M[], characterPx: number): M[] {
  const rightOf = (mark: M) => mark.x + GAP_PX + mark.label.length * characterPx;
  const labelled: M[] = [];
  for (const mark of row.toSorted((a, b) => b.weight - a.weight || a.x - b.x)) {
    const right = rightOf(mark);
    const meetsLabel = labelled.some((other) => mark.x - GAP_PX < rightOf(other) && right > other.x - GAP_PX);
    const meetsMark = row.some(({ x }) => x > mark.x + BUNDLE_PX && x < right);
    if (!meetsLabel && !meetsMark) labelled.push(mark);
  }
  return labelled;
}
