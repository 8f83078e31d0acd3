/** Which nodes wait for others, and for each other: the wait-for graph of a topology. */
import type { Arrangement } from "../../../../src/protocols/index.ts";

export interface Wait {
  readonly from: number;
  readonly to: number;
  /** Who gave it away: the voter whose vote the other has; null where that is the other itself. */
  readonly through: number | null;
  /** Part of a circle of nodes that wait for each other: a deadlock. */
  readonly isCircular: boolean;
}

export function waitsIn({ nodes }: Arrangement): readonly Wait[] {
  const isUp = new Set(nodes.flatMap(({ node, condition }) => (condition === "down" ? [] : [node])));
  const waits = new Map<string, Omit<Wait, "isCircular">>();
  const note = (from: number, to: number, through: number | null) => {
    if (from === to || !isUp.has(from) || waits.has(`${from} ${to}`)) return;
    waits.set(`${from} ${to}`, { from, to, through });
  };
  for (const { node, position } of nodes) {
    const { queue = [], grantedTo, waitsFor = [] } = position;
    for (const to of waitsFor) note(node, to, null);
    for (const from of queue)
      note(from, grantedTo ?? node, grantedTo === undefined || grantedTo === node ? null : node);
  }
  const found = [...waits.values()];
  const nextOf = (of: number) => found.filter(({ from }) => from === of).map(({ to }) => to);
  const isReachable = (from: number, goal: number): boolean => {
    const seen = new Set([from]);
    for (const each of seen) for (const next of nextOf(each)) seen.add(next); // A set is walked with what is added.
    return seen.has(goal);
  };
  return found.map((wait) => ({ ...wait, isCircular: isReachable(wait.to, wait.from) }));
}
