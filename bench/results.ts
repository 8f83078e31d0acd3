/** Runs a benchmark's rounds, and prints the results. */
import { progress } from "./command-line.ts";

export const quantile = (figures: readonly number[], share: number): number => {
  const sorted = figures.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
};

export const median = (figures: readonly number[]): number => quantile(figures, 0.5);

/** Formats median, minimum and maximum: `5.67 [5.21–5.90]`. Larger numbers have fewer decimals. */
export function spread(figures: readonly number[]): string {
  const middle = median(figures);
  const digits = middle >= 100 ? 0 : middle >= 10 ? 1 : 2;
  const [least, most] = [Math.min(...figures), Math.max(...figures)];
  return `${middle.toFixed(digits)} [${least.toFixed(digits)}–${most.toFixed(digits)}]`;
}

/**
 * Runs every measurement once per round, so that other work on the machine slows all of them down equally. The first
 * round is a warm-up.
 */
export async function inTurns<N extends string, F>(
  rounds: number,
  measurements: Readonly<Record<N, () => F | Promise<F>>>,
  { about = "", warmUps = 1 }: { readonly about?: string; readonly warmUps?: number } = {},
): Promise<Record<N, F[]>> {
  const names = Object.keys(measurements) as N[];
  const found = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<N, F[]>;
  for (let round = 1 - warmUps; round <= rounds; round++)
    for (const name of names) {
      progress(`${about}${name}, round ${round} of ${rounds}`);
      const figure = await measurements[name]();
      if (round > 0) found[name].push(figure);
    }
  progress("");
  return found;
}

export const OURS = "Coterie";

/** A row: one figure per round for each system. */
export interface Row {
  readonly section: string;
  readonly what: string;
  /**
   * For units that end with `/s`, higher is better; for all others, lower is better. `survived` is 1 or 0 in each
   * round.
   */
  readonly unit: string;
  readonly figures: Readonly<Record<string, readonly number[]>>;
}

/** Rows, in order of their first appearance. */
export class Rows {
  readonly #section: string;
  readonly #rows = new Map<string, Row & { figures: Record<string, number[]> }>();

  constructor(section: string) {
    this.#section = section;
  }

  add(what: string, unit: string, figure: number, system: string = OURS): void {
    const key = `${what}, ${unit}`;
    const row = this.#rows.get(key) ?? { section: this.#section, what, unit, figures: {} };
    row.figures[system] ??= [];
    row.figures[system].push(figure);
    this.#rows.set(key, row);
  }

  /** Adds the measurements made by `inTurns` for several systems. */
  addRounds(what: string, unit: string, found: Readonly<Record<string, readonly number[]>>): void {
    for (const [system, figures] of Object.entries(found))
      for (const figure of figures) this.add(what, unit, figure, system);
  }

  get all(): readonly Row[] {
    return [...this.#rows.values()];
  }
}

/**
 * Returns the ratio of our figure to the peer's for each round. A ratio above 1 means that ours is better, both for
 * rates and for times.
 */
export function timesBetter({ unit, figures }: Row, peer: string, ours = OURS): number[] | null {
  const { [ours]: own, [peer]: others } = figures;
  if (own === undefined || others === undefined) return null;
  return own.map((figure, round) => {
    const other = others[round] as number;
    return unit.endsWith("/s") ? figure / other : other / figure;
  });
}

function shown(unit: string, figures: readonly number[] | null | undefined): string {
  if (figures === null || figures === undefined) return "–";
  return unit === "survived"
    ? `${figures.filter((figure) => figure === 1).length} of ${figures.length}`
    : spread(figures);
}

/** Returns the cells of a table: our figure and, for each peer, its figure and the ratio from `timesBetter`. */
export function cellsOf(title: string, rows: readonly Row[], ours = OURS): string[][] {
  const peers = [...new Set(rows.flatMap(({ figures }) => Object.keys(figures)))].filter((name) => name !== ours);
  const head = [title, ours, ...peers.flatMap((peer) => [peer, "times"])];
  const lines = rows.map((row) => [
    `${row.what}, ${row.unit}`,
    shown(row.unit, row.figures[ours]),
    ...peers.flatMap((peer) => [shown(row.unit, row.figures[peer]), shown("", timesBetter(row, peer, ours))]),
  ]);
  return [head, ...lines];
}

export const printRows = (title: string, rows: readonly Row[], ours = OURS): void => {
  printTable(cellsOf(title, rows, ours));
};

/** Prints columns. The first is left-aligned, and the others are right-aligned. */
export function printTable(lines: readonly (readonly string[])[]): void {
  const widths = lines[0]?.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0))) ?? [];
  const padded = (cell: string, at: number): string =>
    at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0);
  console.log(`\n${lines.map((line) => line.map(padded).join("  ").trimEnd()).join("\n")}`);
}
