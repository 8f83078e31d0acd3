/**
 * Cheap Paxos: Multi-Paxos where f + 1 main nodes do all the work, and f auxiliaries are idle unless a main node has
 * failed. Then they help to decide on a membership without it, and are idle again.
 * Lamport & Massa, "Cheap Paxos", DSN 2004; the phases are as in Multi-Paxos.
 *
 * Assumes   as Multi-Paxos; clients are at main nodes. For liveness: no second main node fails before the first has
 *           been replaced, or else failed ones recover; and during a replacement a majority of all members is alive.
 * Safety    as Multi-Paxos, under any failures: no two nodes decide differently in a slot.
 * Liveness  below the threshold it stops and reports that (`halted`), and continues when enough nodes are back.
 * Cost      2f messages and two delays at the leader for a command, and f notices unless another proposal follows; no
 *           message to or from an auxiliary while all main nodes answer.
 */
import type { Protocol } from "../../../core/protocol.ts";
import { majority } from "../../../core/quorums.ts";
import { nodeIds, type OptionsOf, option, optionTable, whole } from "../../options.ts";
import { MAX_MEMBERS } from "../family/replicated-log.ts";
import { type MultiPaxos, multiPaxosWith } from "../multi-paxos/multi-paxos.ts";
import { paceOptions, requirePace, settings } from "../multi-paxos/vocabulary.ts";

/** It chooses its members itself. */
export type CheapPaxos = Omit<MultiPaxos, "command"> & {
  command: Exclude<MultiPaxos["command"], { type: "reconfigure" }>;
};

const cheapPaxosOptions = optionTable(
  "cheap-paxos",
  {
    ...paceOptions,
    auxiliaries: option(
      nodeIds(MAX_MEMBERS),
      [],
      "the auxiliary nodes; empty: the highest f of 2f + 1 or 2f + 2 nodes",
    ),
    suspectAfter: whole(2, "a main node counts as failed after this many consecutive unanswered heartbeats"),
  },
  requirePace,
);

export type CheapPaxosOptions = OptionsOf<typeof cheapPaxosOptions>;

export function cheapPaxos(given?: Partial<CheapPaxosOptions>): Protocol<CheapPaxos> {
  const { auxiliaries, suspectAfter, ...options } = cheapPaxosOptions.settle(given);
  const all = settings({ ...options, voters: [], learners: [] }, Math.max(1, suspectAfter));
  const protocol = multiPaxosWith("cheap-paxos", all, (nodes) =>
    auxiliaries.length > 0 ? [...auxiliaries].sort((a, b) => a - b) : nodes.slice(majority(nodes.length)),
  );
  const { reconfigure: _command, ...command } = protocol.command;
  const { reconfigure: _shape, ...commandShapes } = protocol.shapes.command;
  return {
    ...protocol,
    command,
    shapes: { ...protocol.shapes, command: commandShapes },
    source: "Lamport & Massa, DSN 2004",
    assumes: [
      ...protocol.assumes,
      "for liveness: main nodes fail one at a time, and each is replaced before the next fails",
    ],
    costs: [
      {
        when: "one command of the leader, including decision notices",
        messages: (nodes: number) => (all.announces ? 3 : 2) * (majority(nodes) - 1),
      },
    ],
  };
}
