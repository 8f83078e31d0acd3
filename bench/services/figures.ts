/** What the rounds of `coterie bench services` come to, and how it is shown. */
import { spread } from "../figures.ts";

/** One row: a figure of each round. */
export interface Row {
  readonly section: string;
  readonly what: string;
  readonly unit: "pairs/s" | "messages/s" | "ms" | "rounds that survive";
  readonly figures: readonly number[];
}

const digits = { "pairs/s": 0, "messages/s": 0, ms: 1, "rounds that survive": 0 } as const;

export const quantile = (figures: readonly number[], share: number): number => {
  const sorted = [...figures].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
};

/** `4 of 5` for what survives or does not, median, least and most for the rest. */
export function shown({ unit, figures }: Row): string {
  if (unit !== "rounds that survive") return `${spread(figures, digits[unit])} ${unit}`;
  return `${figures.filter((figure) => figure === 1).length} of ${figures.length}`;
}

export function print(title: string, rows: readonly Row[]): void {
  console.log(`\n${title}\n`);
  const width = 2 + Math.max(...rows.map(({ what }) => what.length));
  for (const row of rows) console.log(`  ${row.what.padEnd(width)}${shown(row)}`);
}

/** Collects what the rounds give, in the order in which the rows are met first. */
export class Rows {
  readonly #section: string;
  readonly #rows = new Map<string, { unit: Row["unit"]; figures: number[] }>();

  constructor(section: string) {
    this.#section = section;
  }

  add(what: string, unit: Row["unit"], figure: number): void {
    const row = this.#rows.get(what) ?? { unit, figures: [] };
    row.figures.push(figure);
    this.#rows.set(what, row);
  }

  get all(): Row[] {
    return [...this.#rows].map(([what, { unit, figures }]) => ({ section: this.#section, what, unit, figures }));
  }
}
