/** Initial states of Multi-Paxos that explorations would take long to reach. */
import type { Protocol } from "../../src/core/protocol.ts";
import type { MultiPaxos } from "../../src/protocols/consensus/multi-paxos/multi-paxos.ts";

/**
 * Returns the protocol with this initial state: nodes 1 and 2 accepted a value in ballot 2, so it is chosen, and node 1
 * knows it. Node 0 accepted a different value in ballot 1.
 */
export function inTwoBallots(whole: Protocol<MultiPaxos>): Protocol<MultiPaxos> {
  const accepted = (round: number, node: number) => {
    const ballot = { round, node };
    const command = { client: node, sequence: 9, operation: "x" };
    return { round, promised: ballot, log: { 1: { ballot, value: { type: "command", command } as const } } };
  };
  return {
    ...whole,
    init: (self, peers) => ({
      ...whole.init(self, peers),
      ...(self === 0 ? accepted(1, 0) : accepted(2, 1)),
      decided: self === 1 ? 1 : 0,
    }),
  };
}
