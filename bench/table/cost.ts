/** Costs: a formula, declared by the algorithm if possible, and a measurement. */

export interface Cost {
  /** A protocol's name in the registry, with its variant if it has one. */
  readonly protocol: string;
  readonly what: string;
  readonly unit: "messages" | "datagrams" | "message times" | "messages per entry" | "durable writes" | "crashes";
  /** The formula as written in the literature. */
  readonly formula: string;
  /** Returns a single number if the formula is exact, or the minimum and maximum if it is a range. */
  expected(nodes: number): number | readonly [least: number, most: number];
  /** Measures a single figure, or one for each case that the range covers. */
  measure(nodes: number): number | readonly number[];
  /** The maximum number of nodes. Larger systems take too long to measure. */
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
  /** Whether the measured figures are within the expected range. */
  readonly fits: boolean;
}

/** Rounds away the tiny processing times of nodes. Without these, message times are whole numbers. */
const round = (figure: number): number => Math.round(figure * 1_000) / 1_000;

const number = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

/** Formats a range: `3`, or `1 … 3`. */
export const span = ([least, most]: readonly [number, number]): string =>
  least === most ? number.format(least) : `${number.format(least)} … ${number.format(most)}`;

/** Measures a cost. Returns null if there are more nodes than its maximum. */
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

/** Returns the number of messages that an algorithm declares for a case. */
export function declared({ name, costs }: Declares, when: string): (nodes: number) => number {
  const cost = costs.find((each) => each.when === when);
  if (cost !== undefined) return cost.messages;
  const known = costs.map((each) => `“${each.when}”`).join(", ");
  throw new Error(`expected ${name} to declare what costs “${when}”, got ${known}`);
}

/** Like `declared`, but with a formula for the table. */
export const declaredFormula = (protocol: Declares, when: string, formula: string): Formula => {
  return { formula, expected: declared(protocol, when) };
};

export type Formula = Pick<Cost, "formula" | "expected">;

export const exactly = (count: number): Formula => ({ formula: String(count), expected: () => count });
export const formula = (text: string, expected: Cost["expected"]): Formula => ({ formula: text, expected });

/** Returns a function that creates the rows for one algorithm. */
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
