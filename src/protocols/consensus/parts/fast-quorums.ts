/**
 * "Choosing Quorums": how many acceptors make a classic and a fast quorum. Any two classic quorums meet, and a classic quorum meets
 * what any two fast ones have in common: 2·Qc > N and Qc + 2·Qf > 2N.
 */
import { UsageError, unexpected } from "../../../core/errors.ts";
import { majority } from "../../../core/quorums.ts";

export interface Quorums {
  classic: number;
  fast: number;
}

/** `majority`: classic quorums as small as can be, and fast ones of ⌈3N/4⌉. `equal`: both of ⌊2N/3⌋ + 1. */
export type QuorumChoice = "majority" | "equal";

export function chosenQuorums(nodes: number, choice: QuorumChoice): Quorums {
  if (choice === "majority") return { classic: majority(nodes), fast: Math.ceil((3 * nodes) / 4) };
  const both = Math.floor((2 * nodes) / 3) + 1;
  return { classic: both, fast: both };
}

/** Sizes of one's own, where 0 is the choice's, by the number of nodes. */
export function quorumSizes(choice: QuorumChoice, own: Quorums): (nodes: number) => Quorums {
  const known = new Map<number, Quorums>();
  return (nodes) => {
    const before = known.get(nodes);
    if (before !== undefined) return before;
    const { classic, fast } = chosenQuorums(nodes, choice);
    const sizes = requireQuorums(nodes, { classic: own.classic || classic, fast: own.fast || fast });
    known.set(nodes, sizes);
    return sizes;
  };
}

/** @throws UsageError for quorums of these nodes that need not meet. */
export function requireQuorums(nodes: number, { classic, fast }: Quorums): Quorums {
  for (const [name, size] of Object.entries({ classic, fast }))
    if (size > nodes) refuse(`the ${name} quorum of ${nodes} nodes`, `at most ${nodes}`, size);
  if (2 * classic <= nodes)
    refuse(`the classic quorum of ${nodes} nodes`, "more than half, so that any two meet (2·Qc > N)", classic);
  if (classic + 2 * fast <= 2 * nodes) {
    const least = Math.floor(nodes - classic / 2) + 1;
    const why = "so that any two fast quorums and a classic one meet (Qc + 2·Qf > 2N)";
    refuse(`the fast quorum of ${nodes} nodes`, `at least ${least} beside a classic one of ${classic}, ${why}`, fast);
  }
  return { classic, fast };
}

function refuse(what: string, expected: string, actual: number): never {
  throw new UsageError("bad-quorum", unexpected(what, expected, actual));
}
