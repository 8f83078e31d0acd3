/** One measured figure beside what the formula says of it. */

export interface Cost {
  /** A name of the registry, with the variant where it is one. */
  readonly protocol: string;
  readonly what: string;
  readonly unit: "messages" | "datagrams" | "message times" | "messages an entry" | "durable writes" | "crashes";
  /** As the literature writes it. */
  readonly formula: string;
  /** One number where the formula is exact, least and most where it is a range; null where it says nothing of so many nodes. */
  expected(nodes: number): number | readonly [least: number, most: number] | null;
  /** One figure, or one for each of the cases that the range is over. */
  measure(nodes: number): number | readonly number[];
  /** More nodes than this take too long; unlimited unless said. */
  readonly maxNodes?: number;
}

export interface Figure {
  readonly protocol: string;
  readonly what: string;
  readonly unit: Cost["unit"];
  readonly formula: string;
  readonly nodes: number;
  readonly expected: readonly [least: number, most: number];
  readonly measured: readonly [least: number, most: number];
  /** Exactly, where the formula is exact. */
  readonly fits: boolean;
}

/** Message times are sums of ones, but for the tiny times that nodes take. */
const round = (figure: number): number => Math.round(figure * 1_000) / 1_000;

/** Null where the formula says nothing of so many nodes. */
export function measured(cost: Cost, nodes: number): Figure | null {
  const { protocol, what, unit, formula } = cost;
  if (nodes > (cost.maxNodes ?? Number.POSITIVE_INFINITY)) return null;
  const said = cost.expected(nodes);
  if (said === null) return null;
  const expected = typeof said === "number" ? ([said, said] as const) : said;
  const all = [cost.measure(nodes)].flat().map(round);
  const range = [Math.min(...all), Math.max(...all)] as const;
  const fits = range[0] >= round(expected[0]) && range[1] <= round(expected[1]);
  return { protocol, what, unit, formula, nodes, expected, measured: range, fits };
}
