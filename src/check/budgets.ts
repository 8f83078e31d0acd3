/** How much more may go wrong in a run: a few numbers at the end of a state's tuple, one for each limit that counts. */
/** What is counted. All but time-outs are faults. */
export const faultKinds = ["crashes", "recoveries", "losses", "duplications"] as const;
export type FaultKind = (typeof faultKinds)[number];
export type Counted = FaultKind | "timeouts";

export interface Limits extends Readonly<Partial<Record<FaultKind, number>>> {
  /** How many faults of all kinds together. */
  readonly faults?: number;
  readonly maxTimeouts?: number;
}

export class Budgets {
  /** How many numbers of the tuple are budgets. */
  readonly width: number;
  /** At the beginning of a run. */
  readonly full: readonly number[];
  /** The budgets that each kind draws on, by their place in the tuple. Null: it never happens. */
  readonly #drawnOn: Readonly<Record<Counted, readonly number[] | null>>;

  /** @param at where in a tuple the budgets begin */
  constructor(limits: Limits, at: number) {
    const full: number[] = [];
    const open = (size: number): number => at + full.push(size) - 1;
    const together = limits.faults ?? Number.POSITIVE_INFINITY;
    const allowed = (kind: FaultKind): number => (together === 0 ? 0 : (limits[kind] ?? 0));
    const isShared = Number.isFinite(together) && faultKinds.some((kind) => allowed(kind) > 0);
    const shared = isShared ? [open(together)] : [];
    const drawnOn = (kind: FaultKind): readonly number[] | null => {
      if (allowed(kind) === 0) return null;
      return allowed(kind) < together ? [...shared, open(allowed(kind))] : shared;
    };
    this.#drawnOn = {
      crashes: drawnOn("crashes"),
      recoveries: drawnOn("recoveries"),
      losses: drawnOn("losses"),
      duplications: drawnOn("duplications"),
      timeouts: limits.maxTimeouts === undefined ? [] : [open(limits.maxTimeouts)],
    };
    this.full = full;
    this.width = full.length;
  }

  /** Whether it can happen in some run. */
  has(kind: Counted): boolean {
    return this.#drawnOn[kind] !== null;
  }

  mayHappen(tuple: Int32Array, kind: Counted): boolean {
    const places = this.#drawnOn[kind];
    if (places === null) return false;
    for (let i = 0; i < places.length; i++) if ((tuple[places[i] as number] as number) <= 0) return false;
    return true;
  }

  /** Whether no fault can happen any more, and nothing else is counted. */
  areSpent(tuple: Int32Array): boolean {
    return this.#drawnOn.timeouts?.length === 0 && !faultKinds.some((kind) => this.mayHappen(tuple, kind));
  }

  spend(tuple: Int32Array, kind: Counted): void {
    for (const place of this.#drawnOn[kind] ?? []) tuple[place] = (tuple[place] as number) - 1;
  }
}
