/**
 * Quorum systems. Any two quorums of a system intersect. Weighted voting: Gifford, SOSP 1979; grids: Maekawa, ACM TOCS
 * 1985.
 */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { majority } from "../../../core/quorums.ts";
import { list, natural, perNode, type Shape, variants } from "../../../core/shape.ts";

/** A quorum system: the sets of members that are quorums. */
export type Quorums =
  | { type: "majority" }
  /** Sets whose total weight is at least `threshold`. A member that is not listed has weight 1. */
  | { type: "weighted"; weights: Record<NodeId, number>; threshold: number }
  /**
   * A full row and a full column of a grid with this number of columns. The members fill the grid row by row, in
   * ascending order.
   */
  | { type: "grid"; columns: number }
  /** The listed sets and their supersets. */
  | { type: "sets"; sets: NodeId[][] };

const MAX_MEMBERS = 1_000;
export const quorumsShape: Shape<Quorums> = variants<Quorums>({
  majority: {},
  weighted: { weights: perNode(natural, MAX_MEMBERS), threshold: natural },
  grid: { columns: natural },
  sets: { sets: list(list(natural, MAX_MEMBERS), MAX_MEMBERS) },
});

/** Returns whether `those` includes a quorum of `members`. */
export function isQuorum(quorums: Quorums, members: readonly NodeId[], those: readonly NodeId[]): boolean {
  const among = members.filter((node) => those.includes(node));
  switch (quorums.type) {
    case "majority":
      return among.length >= majority(members.length);
    case "weighted":
      return weightOf(quorums, among) >= quorums.threshold;
    case "grid":
      return hasRowAndColumn(quorums.columns, members, among);
    case "sets":
      return quorums.sets.some((set) => set.every((node) => among.includes(node)));
  }
}

/** Returns why these members have no quorum, or which two quorums do not intersect. Null if the system is valid. */
export function quorumsProblem(quorums: Quorums, members: readonly NodeId[]): string | null {
  if (!isQuorum(quorums, members, members)) return `all nodes together (${members.join(", ")}) do not form a quorum`;
  if (quorums.type === "weighted") {
    const total = weightOf(quorums, members);
    return 2 * quorums.threshold > total
      ? null
      : `expected the threshold to be more than half of ${total}, got ${quorums.threshold}`;
  }
  if (quorums.type !== "sets") return null;
  for (const set of quorums.sets) {
    const other = quorums.sets.find((each) => !each.some((node) => set.includes(node)));
    if (other !== undefined) return `{${set.join(", ")}} and {${other.join(", ")}} have no node in common`;
  }
  return null;
}

const weightOf = ({ weights }: Extract<Quorums, { type: "weighted" }>, nodes: readonly NodeId[]): number =>
  nodes.reduce((sum, node) => sum + (weights[node] ?? 1), 0);

/** Returns whether the nodes include a full row and a full column, which always intersect. */
function hasRowAndColumn(columns: number, members: readonly NodeId[], among: readonly NodeId[]): boolean {
  if (columns === 0 || members.length % columns !== 0) return false;
  const places = [...members]
    .sort((a, b) => a - b)
    .map((node, place) => ({ node, row: Math.floor(place / columns), column: place % columns }));
  const isWhole = (line: "row" | "column", at: number): boolean =>
    places.every((place) => place[line] !== at || among.includes(place.node));
  return places.some(({ row }) => isWhole("row", row)) && places.some(({ column }) => isWhole("column", column));
}

// The sizes of classic and fast quorums. Any two classic quorums intersect, and every classic quorum intersects the
// intersection of any two fast quorums: 2·Qc > N and Qc + 2·Qf > 2N.

/** The number of nodes in each kind of quorum. */
export interface QuorumSizes {
  classic: number;
  fast: number;
}

/**
 * A named choice of quorum sizes. `majority`: the smallest classic quorums, and fast quorums of ⌈3N/4⌉. `equal`: ⌊2N/3⌋
 * + 1 for both.
 */
export type QuorumChoice = "majority" | "equal";

/** Returns the quorum sizes for a named choice. */
export function chosenQuorums(nodes: number, choice: QuorumChoice): QuorumSizes {
  if (choice === "majority") return { classic: majority(nodes), fast: Math.ceil((3 * nodes) / 4) };
  const both = Math.floor((2 * nodes) / 3) + 1;
  return { classic: both, fast: both };
}

/**
 * Returns a function from the number of nodes to quorum sizes. @param own sizes that replace the chosen ones; 0 keeps
 * the chosen size
 */
export function quorumSizes(choice: QuorumChoice, own: QuorumSizes): (nodes: number) => QuorumSizes {
  const known = new Map<number, QuorumSizes>();
  return (nodes) => {
    const before = known.get(nodes);
    if (before !== undefined) return before;
    const { classic, fast } = chosenQuorums(nodes, choice);
    const sizes = requireQuorums(nodes, { classic: own.classic || classic, fast: own.fast || fast });
    known.set(nodes, sizes);
    return sizes;
  };
}

/** Checks the sizes and returns them. @throws UsageError if quorums of these sizes need not intersect */
export function requireQuorums(nodes: number, { classic, fast }: QuorumSizes): QuorumSizes {
  for (const [name, size] of Object.entries({ classic, fast }))
    if (size > nodes) refuse(`the ${name} quorum of ${nodes} nodes`, `at most ${nodes}`, size);
  if (2 * classic <= nodes)
    refuse(`the classic quorum of ${nodes} nodes`, "more than half, so that any two intersect (2·Qc > N)", classic);
  if (classic + 2 * fast <= 2 * nodes) {
    const least = Math.floor(nodes - classic / 2) + 1;
    const why = "so that any two fast quorums intersect within it (Qc + 2·Qf > 2N)";
    refuse(`the fast quorum of ${nodes} nodes`, `at least ${least} with a classic quorum of ${classic}, ${why}`, fast);
  }
  return { classic, fast };
}

function refuse(what: string, expected: string, actual: number): never {
  throw new UsageError("bad-quorum", unexpected(what, expected, actual));
}
