/**
 * Voting sets for Maekawa's mutual exclusion: for each node i, a set V_i of nodes whose votes it needs, such that
 *
 *   i ∈ V_i;   V_i ∩ V_j ≠ ∅;   |V_i| = K for all i;   every node is in M = K of the sets.
 *
 * Maekawa, "A √N Algorithm for Mutual Exclusion in Decentralized Systems", ACM TOCS 1985. All constructions here except
 * the grid are cyclic: V_i = { i + d mod N : d ∈ D }. The four conditions then reduce to one: 0 ∈ D, and every residue
 * is the difference between two members of D.
 */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { NodeId } from "../../../core/protocol.ts";

/**
 * How voting sets are constructed.
 * - `plane`: the lines of a finite projective plane, with K = q + 1. It exists if N = q² + q + 1 for a prime power q.
 *   (For N = 3, q = 1: the triangle.)
 * - `grid`: a row and a column of a rectangle without gaps, with K = rows + columns − 1.
 * - `cyclic`: for any N, with K ≤ 2⌈√N⌉ − 1.
 */
export type Construction = "plane" | "grid" | "cyclic";

/** For each node index, the indexes of the nodes in its voting set, in ascending order. */
export type VotingSets = readonly (readonly number[])[];

const MAX_NODES = 10_000;

/**
 * Returns the smallest sets that any construction gives, or the sets from the given construction.
 * @throws UsageError if `nodes` is out of range, or if the given construction does not exist for that number of nodes.
 */
export function votingSets(nodes: number, construction?: Construction): VotingSets {
  if (!Number.isSafeInteger(nodes) || nodes < 1 || nodes > MAX_NODES)
    throw new UsageError(
      "bad-voting-sets",
      unexpected("the number of nodes", `a whole number from 1 to ${MAX_NODES}`, nodes),
    );
  switch (construction) {
    case "plane":
      return required(plane(nodes), nodes, "q² + q + 1 for a prime power q");
    case "grid":
      return required(grid(nodes), nodes, "a product of two whole numbers > 1");
    case "cyclic":
      return cyclic(nodes, cover(nodes));
    default:
      return plane(nodes) ?? gridOrCyclic(nodes);
  }
}

/**
 * Returns a description of the first problem with the voting sets, or null if the four conditions hold. Disjoint sets
 * are reported first, because they let two nodes in at once. The other conditions only balance the load.
 */
export function votingSetsProblem(sets: VotingSets): string | null {
  const size = sets[0]?.length ?? 0;
  const memberships: number[][] = sets.map(() => []);
  for (const [node, set] of sets.entries()) {
    if (!set.includes(node)) return `node ${node} is not in its own set`;
    for (const member of set) memberships[member]?.push(node);
  }
  for (const [node, set] of sets.entries()) {
    const met = new Uint8Array(sets.length);
    for (const member of set) for (const other of memberships[member] ?? []) met[other] = 1;
    const stranger = met.indexOf(0);
    if (stranger >= 0) return `the sets of nodes ${node} and ${stranger} do not intersect`;
  }
  for (const [node, set] of sets.entries())
    if (new Set(set).size !== size || set.length !== size)
      return `expected node ${node}'s set to have ${size} different members`;
  const uneven = memberships.findIndex(({ length }) => length !== size);
  return uneven < 0 ? null : `expected node ${uneven} to be in ${size} sets, got ${memberships[uneven]?.length}`;
}

function required(sets: VotingSets | null, nodes: number, wanted: string): VotingSets {
  if (sets !== null) return sets;
  throw new UsageError("bad-voting-sets", unexpected("the number of nodes", wanted, nodes));
}

/** Returns the grid sets or the cyclic sets, depending on which are smaller. */
function gridOrCyclic(nodes: number): VotingSets {
  const differences = cover(nodes);
  const columns = columnsOf(nodes);
  const isGrid = columns !== null && columns + nodes / columns - 1 <= differences.length;
  return (isGrid ? grid(nodes) : null) ?? cyclic(nodes, differences);
}

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const ascending = (places: readonly number[]): number[] => [...places].sort((a, b) => a - b);

function cyclic(nodes: number, differences: readonly number[]): VotingSets {
  const sorted = ascending(differences);
  // Wrapped indexes are the lowest, so they come first.
  return range(nodes).map((i) => [
    ...sorted.filter((d) => i + d >= nodes).map((d) => i + d - nodes),
    ...sorted.filter((d) => i + d < nodes).map((d) => i + d),
  ]);
}

/** Returns 0 … r − 1 and the multiples of r. Their differences cover all of 0 … N − 1. */
function cover(nodes: number): number[] {
  const covers = range(Math.ceil(Math.sqrt(nodes))).map((at) => {
    const step = at + 1;
    // Differences up to half of N are enough, because the others are their negatives.
    const multiples = range(Math.ceil((nodes / 2 + 1) / step)).map((i) => (i + 1) * step);
    return [...new Set([...range(step), ...multiples].map((d) => d % nodes))];
  });
  return covers.reduce((best, each) => (each.length < best.length ? each : best));
}

/** Returns the width of the gapless rectangle that is closest to a square. Null for a prime. */
function columnsOf(nodes: number): number | null {
  return range(Math.floor(Math.sqrt(nodes)) + 1).findLast((width) => width > 1 && nodes % width === 0) ?? null;
}

function grid(nodes: number): VotingSets | null {
  const columns = columnsOf(nodes);
  if (columns === null) return null;
  const rows = nodes / columns;
  return range(nodes).map((i) => {
    const row = range(columns).map((column) => i - (i % columns) + column);
    const column = range(rows).map((each) => each * columns + (i % columns));
    return [
      ...column.filter((each) => each < (row[0] as number)),
      ...row,
      ...column.filter((each) => each > (row.at(-1) as number)),
    ];
  });
}

/**
 * Returns the cyclic plane of Singer, "A theorem in finite projective geometry", 1938. Null unless N = q² + q + 1 for a
 * prime power q.
 */
function plane(nodes: number): VotingSets | null {
  const order = Math.round((Math.sqrt(4 * nodes - 3) - 1) / 2);
  if (order * order + order + 1 !== nodes) return null;
  if (order === 1) return cyclic(nodes, [0, 1]);
  const field = primePower(order);
  if (field === null) return null;
  const differences = singerSet(field.prime, field.exponent);
  const first = differences[0] as number;
  return cyclic(
    nodes,
    differences.map((d) => d - first),
  );
}

function primePower(order: number): { prime: number; exponent: number } | null {
  const prime = range(order + 1).find((divisor) => divisor > 1 && order % divisor === 0);
  if (prime === undefined) return null;
  const exponent = Math.round(Math.log(order) / Math.log(prime));
  return prime ** exponent === order ? { prime, exponent } : null;
}

/**
 * Returns Singer's line. Let α be a primitive element of GF(q³). The i < q² + q + 1 for which the trace of α^i over
 * GF(q) is 0 form a line: a set whose differences contain every residue exactly once.
 */
function singerSet(prime: number, exponent: number): number[] {
  const order = prime ** exponent;
  const powers = powersOfPrimitive(prime, 3 * exponent);
  const period = powers.length;
  const isZero = (i: number): boolean => {
    const terms = [i, i * order, i * order * order].map((k) => powers[k % period] as readonly number[]);
    return (terms[0] as readonly number[]).every(
      (_, k) => terms.reduce((sum, term) => sum + (term[k] ?? 0), 0) % prime === 0,
    );
  };
  return range(order * order + order + 1).filter(isZero);
}

/**
 * Returns the powers 1, α, α², … of a primitive element α of GF(p^n), as vectors over GF(p). Uses the first polynomial
 * that has such a root.
 */
function powersOfPrimitive(prime: number, degree: number): readonly (readonly number[])[] {
  for (let code = 1; ; code++) {
    // α^n is the polynomial with the digits of `code` as its coefficients.
    const tail = range(degree).map((k) => Math.floor(code / prime ** k) % prime);
    const powers = powersOf(tail, prime);
    if (powers.length === prime ** degree - 1) return powers;
  }
}

function powersOf(tail: readonly number[], prime: number): number[][] {
  const one: number[] = tail.map((_, k) => (k === 0 ? 1 : 0));
  const powers = [one];
  const isOne = (vector: readonly number[]): boolean => vector.every((digit, k) => digit === one[k]);
  for (let last = one; powers.length < prime ** tail.length; ) {
    const carry = last.at(-1) as number;
    const shifted = [0, ...last.slice(0, -1)];
    last = shifted.map((digit, k) => (digit + carry * (tail[k] as number)) % prime);
    if (isOne(last) || last.every((digit) => digit === 0)) break;
    powers.push(last);
  }
  return powers;
}

/**
 * Returns a function that maps a node to its voters, in ascending order. The sets are computed once per number of
 * nodes.
 */
export function electorates(): (self: NodeId, peers: readonly NodeId[]) => NodeId[] {
  const known = new Map<number, VotingSets>();
  return (self, peers) => {
    const nodes = [...peers, self].sort((a, b) => a - b);
    const sets = known.get(nodes.length) ?? votingSets(nodes.length);
    known.set(nodes.length, sets);
    return (sets[nodes.indexOf(self)] as readonly number[]).map((place) => nodes[place] as NodeId);
  };
}

/** Returns K for the given number of nodes. */
export const voteCount = (nodes: number): number => votingSets(nodes)[0]?.length ?? 0;
