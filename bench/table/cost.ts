/** Costs: a formula, declared by the algorithm if possible, and a measurement. */

export interface Cost {
  /** A name of the registry, with its variant if it is one. */
  readonly protocol: string;
  readonly what: string;
  readonly unit: "messages" | "datagrams" | "message times" | "messages an entry" | "durable writes" | "crashes";
  /** As the literature writes it. */
  readonly formula: string;
  /** One number if the formula is exact, minimum and maximum if it is a range. */
  expected(nodes: number): number | readonly [least: number, most: number];
  /** One figure, or one for each case that the range covers. */
  measure(nodes: number): number | readonly number[];
  /** Larger numbers of nodes take too long. */
  readonly maxNodes: number;
}

export interface Figure {
  readonly protocol: string;
  readonly what: string;
  readonly unit: Cost["unit"];
  readonly formula: string;
  readonly nodes: number;
  readonly expected: readonly [least: number, most: number];
  readonly measured: readonly [least: number, most: number];
  /** Equal, if the formula is exact. */
  readonly fits: boolean;
}

/** Message times are sums of ones, apart from the tiny processing times of nodes. */
const round = (figure: number): number => Math.round(figure * 1_000) / 1_000;

const number = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

/** `3`, or `1 … 3`. */
export const span = ([least, most]: readonly [number, number]): string =>
  least === most ? number.format(least) : `${number.format(least)} … ${number.format(most)}`;

/** Null for more nodes than the cost is measured with. */
export function measured(cost: Cost, nodes: number): Figure | null {
  const { protocol, what, unit, formula } = cost;
  if (nodes > cost.maxNodes) return null;
  const wanted = cost.expected(nodes);
  const expected = typeof wanted === "number" ? ([wanted, wanted] as const) : wanted;
  const all = [cost.measure(nodes)].flat().map(round);
  const range = [Math.min(...all), Math.max(...all)] as const;
  const fits = range[0] >= round(expected[0]) && range[1] <= round(expected[1]);
  return { protocol, what, unit, formula, nodes, expected, measured: range, fits };
}

interface Declares {
  readonly name?: string;
  readonly costs: readonly { readonly when: string; readonly messages: (nodes: number) => number }[];
}

/** The declared number of messages of an algorithm in the named case. */
export function declared({ name, costs }: Declares, when: string): (nodes: number) => number {
  const cost = costs.find((each) => each.when === when);
  if (cost !== undefined) return cost.messages;
  const known = costs.map((each) => `“${each.when}”`).join(", ");
  throw new Error(`expected ${name} to declare what costs “${when}”, got ${known}`);
}

/** The same with a formula for the table. */
export const declaredFormula = (protocol: Declares, when: string, formula: string): Formula => {
  return { formula, expected: declared(protocol, when) };
};

export type Formula = Pick<Cost, "formula" | "expected">;

export const exactly = (count: number): Formula => ({ formula: String(count), expected: () => count });
export const formula = (text: string, expected: Cost["expected"]): Formula => ({ formula: text, expected });

/** The rows of one algorithm. */
export const costOf =
  (protocol: string, maxNodes = Number.POSITIVE_INFINITY) =>
  (
    what: string,
    unit: Cost["unit"],
    { formula, expected }: Formula,
    measure: Cost["measure"],
    most = maxNodes,
  ): Cost => {
    return { protocol, what, unit, formula, expected, measure, maxNodes: most };
  };

export const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);
