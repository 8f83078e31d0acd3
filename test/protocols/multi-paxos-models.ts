/** Initial states of Multi-Paxos that explorations could reach only slowly. */
import type { Protocol } from "../../src/core/protocol.ts";
import type { MultiPaxos } from "../../src/protocols/consensus/multi-paxos/multi-paxos.ts";

/**
 * The value that nodes 1 and 2 accepted in ballot 2 is chosen, and node 1 knows it. Node 0 accepted another value in ballot 1.
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
