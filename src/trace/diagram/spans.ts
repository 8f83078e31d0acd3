/** Spans of a lane: how long something stays as it is. The life of a node is one; so are leaderships and critical sections. */

export interface Span<T> {
  /** −Infinity where it began before anything is known. */
  readonly from: number;
  /** Infinity where it still lasts. */
  readonly to: number;
  readonly value: T;
}

/** What changes come to: neighbours that are the same are one span, and what lasts no time is none. `changes` ascend. */
export function spansOf<T>(
  changes: readonly { readonly at: number; readonly value: T }[],
  end: number,
  isSame: (a: T, b: T) => boolean,
): Span<T>[] {
  const spans: Span<T>[] = [];
  for (const [index, { at: from, value }] of changes.entries()) {
    const to = changes[index + 1]?.at ?? end;
    const last = spans.at(-1);
    if (last !== undefined && isSame(last.value, value)) spans[spans.length - 1] = { ...last, to };
    else if (to > from) spans.push({ from, to, value });
  }
  return spans;
}
