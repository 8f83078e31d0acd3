/** The cost of agreements that proceed in rounds, with all nodes taking part. Every message takes one unit of time. */
import type { NodeId, Tagged } from "../../src/core/protocol.ts";
import { oralMessages } from "../../src/protocols/consensus/byzantine-generals/byzantine-generals.ts";
import { signedMessages } from "../../src/protocols/consensus/byzantine-generals/signed-messages.ts";
import { floodSet } from "../../src/protocols/consensus/flood-set.ts";
import {
  interactiveConsistency,
  signedInteractiveConsistency,
} from "../../src/protocols/consensus/interactive-consistency.ts";
import { lockstep } from "../../src/protocols/consensus/lockstep/lockstep.ts";
import type { AnyProtocol } from "../../src/protocols/index.ts";
import { simulation } from "../../src/sim/simulation.ts";
import { type Cost, costOf, declaredFormula, range } from "./cost.ts";

interface Rounds {
  readonly name: string;
  readonly make: () => unknown;
  /** The case in the algorithm's `costs`. */
  readonly cost: string;
  readonly formula: string;
  /** The nodes that propose. Default: all. */
  readonly proposers?: readonly NodeId[];
  readonly maxNodes: number;
}

const anOrder = { cost: "the commander gives an order", proposers: [0], maxNodes: 10 } as const;

const rounds: readonly Rounds[] = [
  {
    ...anOrder,
    name: "byzantine-generals",
    make: () => oralMessages(),
    formula: "Σ over k = 0 … m of (N − 1)…(N − 1 − k)",
  },
  { ...anOrder, name: "byzantine-generals, signed", make: () => signedMessages(), formula: "(N − 1)²" },
  {
    name: "flood-set",
    make: () => floodSet(),
    cost: "all nodes propose",
    formula: "(f + 1)N(N − 1), f = 1",
    maxNodes: 31,
  },
  {
    name: "interactive-consistency",
    make: () => interactiveConsistency(),
    cost: "all nodes propose",
    formula: "N Σ over k = 0 … m of (N − 1)…(N − 1 − k)",
    maxNodes: 7,
  },
  {
    name: "interactive-consistency, signed",
    make: () => signedInteractiveConsistency(),
    cost: "all nodes propose",
    formula: "N(N − 1)²",
    maxNodes: 7,
  },
  { name: "lockstep", make: () => lockstep(), cost: "one turn", formula: "2N(N − 1)", maxNodes: 31 },
  {
    name: "lockstep, echo",
    make: () => lockstep({ echoes: true }),
    cost: "one turn",
    formula: "3N(N − 1)",
    maxNodes: 31,
  },
];

function measured(make: () => unknown, nodes: number, proposers: readonly NodeId[] | undefined): number {
  const ids = range(0, nodes - 1);
  const protocol = { ...(make() as AnyProtocol), properties: [] };
  const sim = simulation({ protocol, nodes: ids, seed: 1, delayMs: 1 });
  for (const node of ids) sim.start(node);
  for (const node of proposers ?? ids) sim.command(node, { type: "propose", value: `from ${node}` } as Tagged as never);
  sim.run();
  return sim.messages.total;
}

export const roundsCosts: readonly Cost[] = rounds.map(({ name, make, cost, formula, proposers, maxNodes }) => {
  const expected = declaredFormula(make() as AnyProtocol, cost, formula);
  return costOf(name, maxNodes)(cost, "messages", expected, (nodes) => measured(make, nodes, proposers));
});
