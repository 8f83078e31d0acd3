/**
 * Cheap Paxos: Multi-Paxos with f + 1 main nodes that do all the work, and f auxiliaries that are idle unless a main
 * node has failed. The auxiliaries then help to decide on a membership without the failed node, and become idle again.
 * Lamport & Massa, "Cheap Paxos", DSN 2004; the phases are as in Multi-Paxos.
 *
 * Assumes   as for Multi-Paxos; clients run at main nodes. For liveness: no second main node fails before the first has
 *           been replaced, or failed main nodes recover; and a majority of all members is alive during a replacement.
 * Safety    as for Multi-Paxos, under any failures: no two nodes decide differently in a slot.
 * Liveness  if too few nodes are alive, the protocol stops and reports `halted`. It continues once enough nodes have
 *           recovered.
 * Cost      2f messages and two message delays for a command at the leader, plus f decision notices unless a later
 *           proposal carries the decision; no messages to or from auxiliaries while all main nodes answer.
 */
import type { Protocol } from "../../../core/protocol.ts";
import { majority } from "../../../core/quorums.ts";
import { nodeIds, type OptionsOf, option, optionTable, whole } from "../../options.ts";
import { MAX_MEMBERS } from "../family/replicated-log.ts";
import { type MultiPaxos, multiPaxosWith } from "../multi-paxos/multi-paxos.ts";
import { paceOptions, requirePace, settings } from "../multi-paxos/vocabulary.ts";

/** The vocabulary of Cheap Paxos. It has no `reconfigure`, because Cheap Paxos chooses its members itself. */
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
      "the auxiliary nodes; if empty, the f highest of 2f + 1 or 2f + 2 nodes",
    ),
    suspectAfter: whole(2, "a main node counts as failed after this many consecutive unanswered heartbeats"),
  },
  requirePace,
);

/** Options for `cheapPaxos()`. */
export type CheapPaxosOptions = OptionsOf<typeof cheapPaxosOptions>;

/** Creates Cheap Paxos. @throws UsageError `bad-option` if an option is unknown or out of range. */
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
        when: "one command issued by the leader, including decision notices",
        messages: (nodes: number) => (all.announces ? 3 : 2) * (majority(nodes) - 1),
      },
    ],
  };
}
