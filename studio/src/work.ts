/** The cost of an election, entry, multicast or decision, used by the laboratory and the live page. */

export interface Work {
  readonly name: "election" | "entry" | "multicast" | "decision";
  /** The number so far, including the current one. */
  readonly count: number;
  /** The number of messages in the last election. For other kinds of work, the mean. */
  readonly messages: number;
  /** Whether the last election, or every entry, is complete. */
  readonly isOver: boolean;
}

export interface Period {
  readonly from: number;
  /** When the period ends. Infinity while it lasts. */
  readonly to: number;
}

/** Merges periods that overlap or are at most `apart` from each other. The result is in ascending order. */
export function merged(periods: readonly Period[], apart = 0): Period[] {
  const found: { from: number; to: number }[] = [];
  for (const { from, to } of periods.toSorted((a, b) => a.from - b.from)) {
    const last = found.at(-1);
    if (last !== undefined && from <= last.to + apart) last.to = Math.max(last.to, to);
    else found.push({ from, to });
  }
  return found;
}

/** Returns the period of an election, or of a term of leadership that began without one. Null for any other state. */
export function electionIn({ kind, from, to }: Period & { readonly kind: string }): Period | null {
  if (kind === "electing") return { from, to };
  return kind === "leading" && from !== Number.NEGATIVE_INFINITY ? { from, to: from } : null;
}
