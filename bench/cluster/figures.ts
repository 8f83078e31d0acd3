/** The rows of `coterie bench cluster`: all systems in one run, and how many times each peer's figure ours is. */
import { median, spread } from "../figures.ts";

export interface Row {
  readonly section: string;
  readonly what: string;
  readonly unit: "/s" | "ms" | "MiB";
  /** One of each round, by the name of the system. Of one that has no such figure, nothing. */
  readonly figures: Readonly<Record<string, readonly number[]>>;
}

export const OURS = "Coterie";

export class Rows {
  readonly #section: string;
  readonly #rows = new Map<string, Row & { figures: Record<string, number[]> }>();

  constructor(section: string) {
    this.#section = section;
  }

  add(system: string, what: string, unit: Row["unit"], figure: number): void {
    const row = this.#rows.get(what) ?? { section: this.#section, what, unit, figures: {} };
    row.figures[system] ??= [];
    row.figures[system].push(figure);
    this.#rows.set(what, row);
  }

  get all(): readonly Row[] {
    return [...this.#rows.values()];
  }
}

/** Above 1: ours is better, whether that is more a second or fewer milliseconds. */
export function timesBetter({ unit, figures }: Row, peer: string): number | null {
  const { [OURS]: ours, [peer]: peers } = figures;
  if (ours === undefined || peers === undefined) return null;
  const ratio = median(ours) / median(peers);
  return unit === "/s" ? ratio : 1 / ratio;
}

const digitsOf = (unit: Row["unit"]): number => (unit === "ms" ? 2 : 0);

/** The cells of a row: what it is, ours, and of each peer its figure and how many times it ours is. */
export function shown(row: Row, peers: readonly string[]): readonly string[] {
  const { what, unit, figures } = row;
  const figure = (system: string): string => {
    const known = figures[system];
    return known === undefined ? "–" : spread(known, digitsOf(unit));
  };
  const times = (peer: string): string => timesBetter(row, peer)?.toFixed(2) ?? "–";
  return [`${what}, ${unit}`, figure(OURS), ...peers.flatMap((peer) => [figure(peer), times(peer)])];
}
