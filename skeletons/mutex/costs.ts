/** Lines that `coterie new mutex NAME` adds to bench/table/mutex.ts: the costs of the placeholder server. */
import { type Cost, declaredFormula } from "../../bench/table/cost.ts";
import { costsAtRest } from "../../bench/table/sections.ts";
import { skeletonAlgorithm } from "./skeleton-algorithm.ts";

export const added: readonly Cost[] = [
  ...costsAtRest("skeleton-algorithm", () => skeletonAlgorithm(), {
    pair: (nodes) => [nodes - 1, nodes - 2],
    entry: { formula: "2", expected: () => 2 },
    handOver: { formula: "2", expected: () => 2 },
    handOverTime: { formula: "2", expected: () => 2 },
    bandwidth: declaredFormula(skeletonAlgorithm(), "one entry and exit, by a node other than the coordinator", "3"),
  }),
];
