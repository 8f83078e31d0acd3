/** Costs as the algorithms declare them: a formula stands once, at its algorithm, and the tables run it. */
import type { Cost } from "./figure.ts";

interface Declares {
  readonly name?: string;
  readonly costs: readonly { readonly when: string; readonly messages: (nodes: number) => number }[];
}

/** How many messages an algorithm says that it takes, in the case that it names so. */
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

/** The rows of one algorithm. */
export const costOf =
  (protocol: string) =>
  (what: string, unit: Cost["unit"], formula: Formula, measure: Cost["measure"], maxNodes?: number): Cost => {
    return { protocol, what, unit, ...formula, measure, ...(maxNodes === undefined ? {} : { maxNodes }) };
  };
