/** The content of a topology drawing in words: as its text alternative, and next to it. */
import type { Arrangement } from "../../../../src/protocols/index.ts";

/** A message in transit. */
export interface Flight {
  readonly id: string;
  readonly from: number;
  readonly to: number;
  /** Includes the enclosing parts, which determine its ink. */
  readonly name: string;
  readonly short: string;
  readonly text: string;
  /** Whether it carries something that a node can hold. */
  readonly isCarrier: boolean;
  /** It has arrived, and its trace fades. */
  readonly isOver?: true;
}

export function factsOf(arrangement: Arrangement, flights: readonly Flight[]): string[] {
  return [
    ...holdersIn(arrangement),
    ...flights
      .filter(({ isCarrier, isOver }) => isCarrier && isOver !== true)
      .map(({ name, from, to }) => `${name.split(".").at(-1)} in transit: ${from} → ${to}`),
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
        : `, which ${through} has admitted`;
  return `${from} waits for ${to}${why}`;
}

/** Promises of a quorum. */
function promisesIn({ topology, nodes }: Arrangement): string[] {
  if (topology !== "quorums") return [];
  return promisesOf(nodes).map(([to, by]) => {
    const most = by.length > nodes.length / 2 ? ": a majority" : "";
    return `${list(by)} ${by.length === 1 ? "has" : "have"} promised to ${to}${most}`;
  });
}

/** Promises by recipient, with the nodes that made them. Nodes with voting sets make none. */
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
  /** The voter whose vote the other node has; null if it is the other node itself. */
  readonly through: number | null;
  /** Part of a cycle of nodes that wait for each other: a deadlock. */
  readonly isCircular: boolean;
}

/** The wait-for graph of a topology. */
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
    for (const each of seen) for (const next of nextOf(each)) seen.add(next); // Iterating over a set includes the elements added meanwhile.
    return seen.has(goal);
  };
  return found.map((wait) => ({ ...wait, isCircular: isReachable(wait.to, wait.from) }));
}
