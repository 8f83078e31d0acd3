/** What the drawing of a topology shows, in words: for those who do not see it, and beside it. */
import type { Arrangement } from "../../../../src/protocols/index.ts";

/** A message on its way. */
export interface Flight {
  readonly id: string;
  readonly from: number;
  readonly to: number;
  /** With the parts around it, by which its ink goes. */
  readonly name: string;
  readonly short: string;
  readonly text: string;
  /** Whether it carries what a node can hold. */
  readonly isCarrier: boolean;
  /** It has arrived: what is left of it fades away. */
  readonly isOver?: true;
}

export function factsOf(arrangement: Arrangement, flights: readonly Flight[]): string[] {
  return [
    ...holdersIn(arrangement),
    ...flights
      .filter(({ isCarrier, isOver }) => isCarrier && isOver !== true)
      .map(({ name, from, to }) => `${name.split(".").at(-1)} on its way: ${from} → ${to}`),
    ...waitingIn(arrangement),
    ...promisesIn(arrangement),
    ...servedIn(arrangement),
  ];
}

function holdersIn({ nodes }: Arrangement): string[] {
  const holders = new Map<string, number[]>();
  for (const { node, condition, position } of nodes)
    if (position.holds !== undefined && condition !== "down")
      holders.set(position.holds, [...(holders.get(position.holds) ?? []), node]);
  return [...holders].map(([what, by]) =>
    by.length === 1 ? `node ${by[0]} has the ${what}` : `${list(by)} have a ${what} each`,
  );
}

function waitingIn(arrangement: Arrangement): string[] {
  const waits = waitsIn(arrangement);
  const circular = new Set(waits.filter(({ isCircular }) => isCircular).map(({ from }) => from));
  return [
    ...(circular.size === 0 ? [] : [`${list([...circular].toSorted((a, b) => a - b))} wait for each other`]),
    ...waits.map((wait) => waitText(arrangement, wait)),
  ];
}

export function waitText({ topology }: Arrangement, { from, to, through }: Wait): string {
  const why =
    through === null
      ? ""
      : topology === "quorums"
        ? `, which has the vote of ${through}`
        : `, which ${through} has let in`;
  return `${from} waits for ${to}${why}`;
}

/** Where promises are what makes a quorum. */
function promisesIn({ topology, nodes }: Arrangement): string[] {
  if (topology !== "quorums") return [];
  return promisesOf(nodes).map(([to, by]) => {
    const most = by.length > nodes.length / 2 ? ": a majority" : "";
    return `${list(by)} ${by.length === 1 ? "has" : "have"} promised to ${to}${most}`;
  });
}

/** The nodes that made them, of those that have no voting sets. */
export function promisesOf(nodes: Arrangement["nodes"]): (readonly [number, readonly number[]])[] {
  const promised = new Map<number, number[]>();
  for (const { node, position } of nodes) {
    const { grantedTo, votingSet } = position;
    if (grantedTo !== undefined && votingSet === undefined)
      promised.set(grantedTo, [...(promised.get(grantedTo) ?? []), node]);
  }
  return [...promised].toSorted(([a], [b]) => a - b);
}

function servedIn({ topology, nodes }: Arrangement): string[] {
  if (topology !== "identifier circle" && topology !== "plane") return [];
  const served = new Map<number, number[]>();
  for (const { node, leader, condition } of nodes)
    if (leader !== null && leader !== node && condition !== "down")
      served.set(leader, [...(served.get(leader) ?? []), node]);
  return [...served].toSorted(([a], [b]) => a - b).map(([by, own]) => `${by} serves ${list(own)}`);
}

const list = (ids: readonly number[]): string =>
  ids.length < 2 ? ids.join("") : `${ids.slice(0, -1).join(", ")} and ${ids.at(-1)}`;

export interface Wait {
  readonly from: number;
  readonly to: number;
  /** Who gave it away: the voter whose vote the other has; null where that is the other itself. */
  readonly through: number | null;
  /** Part of a circle of nodes that wait for each other: a deadlock. */
  readonly isCircular: boolean;
}

/** Which nodes wait for others, and for each other: the wait-for graph of a topology. */
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
