/** The rows of `coterie bench cluster`: both systems in one run, and how many times the peer's figure ours is. */
import { median, spread } from "../figures.ts";

export interface Row {
  readonly section: string;
  readonly what: string;
  readonly unit: "/s" | "ms" | "MiB";
  /** One of each round; of the peer none where it is not installed. */
  readonly ours: number[];
  readonly peers: number[];
}

export class Rows {
  readonly #section: string;
  readonly #rows = new Map<string, Row>();

  constructor(section: string) {
    this.#section = section;
  }

  add(whose: "ours" | "peers", what: string, unit: Row["unit"], figure: number): void {
    const row = this.#rows.get(what) ?? { section: this.#section, what, unit, ours: [], peers: [] };
    row[whose].push(figure);
    this.#rows.set(what, row);
  }

  get all(): readonly Row[] {
    return [...this.#rows.values()];
  }
}

/** Above 1: ours is better, whether that is more a second or fewer milliseconds. */
export function timesBetter({ unit, ours, peers }: Row): number | null {
  if (ours.length === 0 || peers.length === 0) return null;
  const ratio = median(ours) / median(peers);
  return unit === "/s" ? ratio : 1 / ratio;
}

const digitsOf = (unit: Row["unit"]): number => (unit === "ms" ? 2 : 0);

export function shown(row: Row): readonly string[] {
  const { what, unit, ours, peers } = row;
  const figure = (figures: readonly number[]): string => (figures.length === 0 ? "–" : spread(figures, digitsOf(unit)));
  const times = timesBetter(row);
  return [`${what}, ${unit}`, figure(ours), figure(peers), times === null ? "–" : times.toFixed(2)];
}
