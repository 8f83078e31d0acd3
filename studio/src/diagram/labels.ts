/**
 * Decides which marks have room for their label. Marks that stand close together share the room behind the last of them,
 * and the weightiest speaks for all; of equals the last, since it says how things stand now. No label runs over another
 * or over a mark.
 */

export interface Labelled {
  readonly x: number;
  readonly y: number;
  readonly label: string;
  readonly weight: number;
}

/** How far to the right of its mark a label begins; null where it has no room. */
export type Placed<M> = M & { readonly labelDx: number | null };

/** The mean width of a letter. */
export const CHARACTER_PX = 6.4;
/** From a mark to its label, and between labels. */
const GAP_PX = 12;
const BUNDLE_PX = 24;

interface Bundle<M> {
  readonly first: number;
  readonly last: number;
  readonly speaker: M;
}

export function placeLabels<M extends Labelled>(marks: readonly M[], characterPx: number): Placed<M>[] {
  const rows = [...new Set(marks.map(({ y }) => y))].map((y) => marks.filter((mark) => mark.y === y));
  const offsets = new Map(rows.flatMap((row) => offsetsIn(row, characterPx)));
  return marks.map((mark) => ({ ...mark, labelDx: offsets.get(mark) ?? null }));
}

function offsetsIn<M extends Labelled>(row: readonly M[], characterPx: number): [M, number][] {
  const bundles = bundlesOf(row);
  const endOf = ({ last, speaker }: Bundle<M>) => last + GAP_PX + speaker.label.length * characterPx;
  const labelled: Bundle<M>[] = [];
  for (const bundle of bundles.toSorted((a, b) => b.speaker.weight - a.speaker.weight || a.first - b.first)) {
    const end = endOf(bundle);
    const meetsLabel = labelled.some((other) => bundle.first < endOf(other) && end > other.first);
    const meetsMark = bundles.some(({ first }) => first > bundle.last && first < end);
    if (!meetsLabel && !meetsMark) labelled.push(bundle);
  }
  return labelled.map(({ last, speaker }) => [speaker, last + GAP_PX - speaker.x]);
}

function bundlesOf<M extends Labelled>(row: readonly M[]): Bundle<M>[] {
  const bundles: Bundle<M>[] = [];
  for (const mark of row.toSorted((a, b) => a.x - b.x)) {
    const bundle = bundles.at(-1);
    if (bundle === undefined || mark.x - bundle.first > BUNDLE_PX) {
      bundles.push({ first: mark.x, last: mark.x, speaker: mark });
    } else {
      const speaker = mark.weight >= bundle.speaker.weight ? mark : bundle.speaker;
      bundles[bundles.length - 1] = { ...bundle, last: mark.x, speaker };
    }
  }
  return bundles;
}
