/** What the algorithms that vote cost: Maekawa's, and with Sanders' correction. K is the size of a voting set. */
import type { NodeId, Protocol } from "../../src/core/protocol.ts";
import type { Mutex } from "../../src/protocols/mutex/family/workload.ts";
import { maekawa } from "../../src/protocols/mutex/maekawa.ts";
import { maekawaSanders } from "../../src/protocols/mutex/maekawa-sanders/maekawa-sanders.ts";
import { electorates, voteCount } from "../../src/protocols/mutex/parts/voting-sets.ts";
import { declared, declaredFormula } from "./declared.ts";
import type { Cost } from "./figure.ts";
import { CROWD, costsAtRest, crowdedOf, type Pair } from "./measures.ts";
import { range } from "./sections.ts";

/** The members of both sets but for `next`: each of them votes for it when the holder has left. */
function votesToCome(nodes: number, [holder, next]: Pair): number {
  const ids = range(0, nodes - 1);
  const setOf = electorates();
  const set = (node: NodeId): readonly NodeId[] =>
    setOf(
      node,
      ids.filter((id) => id !== node),
    );
  const shared = set(holder).filter((node) => set(next).includes(node));
  return shared.filter((node) => node !== next).length;
}

function maekawaCosts<M extends Mutex>(protocol: string, make: () => Protocol<M>, when: string): Cost[] {
  const others = (n: number): number => voteCount(n) - 1;
  const pair: Pair = [0, 1];
  return costsAtRest(protocol, make, {
    pair: () => pair,
    entry: { formula: "2(K − 1), K ≈ √N", expected: (n) => 2 * others(n) },
    handOver: {
      formula: "K − 1 releases, and a vote of each shared voter",
      expected: (n) => others(n) + votesToCome(n, pair),
    },
    handOverTime: { formula: "1 … 2", expected: () => [1, 2] },
    bandwidth: declaredFormula(make(), when, "3(K − 1)"),
  });
}

function sandersCosts(): Cost[] {
  const protocol = "maekawa-sanders";
  const make = (): ReturnType<typeof maekawaSanders> => maekawaSanders();
  const when = "one entry and exit without rivals";
  const alone = declared(make(), when);
  const crowded: Cost = {
    protocol,
    what: `bandwidth, ${CROWD}`,
    unit: "messages an entry",
    formula: "3(K − 1) … 5(K − 1)",
    expected: (n) => [alone(n), 5 * (voteCount(n) - 1)],
    measure: (n) => crowdedOf(make, n),
    maxNodes: 64,
  };
  return [...maekawaCosts(protocol, make, when), crowded];
}

export const votingCosts: readonly Cost[] = [
  ...maekawaCosts("maekawa", () => maekawa(), "one entry and exit"),
  ...sandersCosts(),
];
