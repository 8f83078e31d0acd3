/** What a piece of work costs, such as an election or an entry: as the laboratory and the live page count it. */

export interface Work {
  readonly name: "election" | "entry" | "multicast" | "decision";
  /** How many there have been, including the one that is under way. */
  readonly count: number;
  /** Of the last election; of the others the mean. */
  readonly messages: number;
  /** Whether the last election has ended, or all entries have. */
  readonly isOver: boolean;
}

export interface Period {
  readonly from: number;
  /** Infinity while it lasts. */
  readonly to: number;
}

/** Periods that overlap, or are at most `apart` from each other, become one. Ascending. */
export function merged(periods: readonly Period[], apart = 0): Period[] {
  const found: { from: number; to: number }[] = [];
  for (const { from, to } of periods.toSorted((a, b) => a.from - b.from)) {
    const last = found.at(-1);
    if (last !== undefined && from <= last.to + apart) last.to = Math.max(last.to, to);
    else found.push({ from, to });
  }
  return found;
}

/** The period of an election, or of a term of leadership that began without one; null for other states. */
export function electionIn({ kind, from, to }: Period & { readonly kind: string }): Period | null {
  if (kind === "electing") return { from, to };
  return kind === "leading" && from !== Number.NEGATIVE_INFINITY ? { from, to: from } : null;
}
