/** Describes a topology drawing as text, for its text alternative and for the text next to it. */
import type { Arrangement } from "../../../../src/protocols/index.ts";

/** A message in transit. */
export interface Flight {
  readonly id: string;
  readonly from: number;
  readonly to: number;
  /** The full name, including the enclosing parts. It determines the ink. */
  readonly name: string;
  readonly short: string;
  readonly text: string;
  /** Whether it carries something that a node can hold. */
  readonly isCarrier: boolean;
  /** Whether the message has arrived and its line is fading. */
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
    by.length === 1 ? `node ${by[0]} has the ${what}` : `${list(by)} each have a ${what}`,
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

/** Describes the promises made by a quorum. */
function promisesIn({ topology, nodes }: Arrangement): string[] {
  if (topology !== "quorums") return [];
  return promisesOf(nodes).map(([to, by]) => {
    const most = by.length > nodes.length / 2 ? ": a majority" : "";
    return `${list(by)} ${by.length === 1 ? "has" : "have"} promised to ${to}${most}`;
  });
}

/**
 * Returns promises by recipient, each with the nodes that made them. Nodes that have voting sets do not make promises.
 */
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
  /** The voter whose vote is held by the other node. Null if the node waits for the other node itself. */
  readonly through: number | null;
  /** Whether the wait is part of a cycle, which is a deadlock. */
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
    for (const each of seen) for (const next of nextOf(each)) seen.add(next); // The iteration includes added elements.
    return seen.has(goal);
  };
  return found.map((wait) => ({ ...wait, isCircular: isReachable(wait.to, wait.from) }));
}
