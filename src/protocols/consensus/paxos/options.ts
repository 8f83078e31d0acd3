/** The options of Paxos: the nodes of each role, the quorums, and when to try again. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { list, natural, nullable, oneOf } from "../../../core/shape.ts";
import { flag, type OptionsOf, option, optionTable, positive } from "../../options.ts";
import { type Quorums, quorumsProblem, quorumsShape } from "../parts/quorum-systems.ts";

const nodes = nullable(list(natural, 1_000));

export const paxosOptions = optionTable("paxos", {
  patienceMs: positive(
    1_000,
    "a proposer tries again with a higher ballot after this time without a quorum, up to twice as long",
  ),
  minBackOffMs: positive(10, "the least random wait of a proposer after a nack"),
  maxBackOffMs: positive(
    200,
    "the longest random wait of a proposer after a nack, so that duelling proposers miss each other",
  ),
  backsOff: flag(true, "whether it waits; otherwise two proposers may refuse each other forever"),
  learnMs: positive(
    2_000,
    "an acceptor proposes an accepted value itself if it has not learned the decision after this time; a proposer that has decided first reminds the others after it",
  ),
  proposers: option(nodes, null, "the nodes that propose; `null`: all"),
  acceptors: option(nodes, null, "the nodes that accept; `null`: all"),
  learners: option(nodes, null, "the nodes that learn; `null`: all"),
  quorums: option<Quorums>(quorumsShape, { type: "majority" }, "the quorums of the acceptors"),
  acceptorsTell: option(
    oneOf("learners", "proposer"),
    "learners",
    "where acceptors send their votes: to every learner, or to the proposer, which then informs the learners as the distinguished one",
  ),
});

export type PaxosOptions = OptionsOf<typeof paxosOptions>;

/** Before the first step: every role has its nodes, and any two quorums of the acceptors meet. @throws UsageError */
export function requireRoles(options: PaxosOptions, nodes: readonly NodeId[]): void {
  const members = nodes.toSorted((a, b) => a - b);
  for (const role of ["proposers", "acceptors", "learners"] as const) {
    const named = options[role];
    if (named === null) continue;
    const stray = named.find((node) => !members.includes(node));
    if (stray !== undefined || named.length === 0)
      throw new UsageError("bad-option", unexpected(`paxos.${role}`, `some of the nodes ${members.join(", ")}`, named));
  }
  const problem = quorumsProblem(options.quorums, options.acceptors ?? members);
  if (problem !== null) throw new UsageError("bad-quorum", `expected paxos.quorums to meet: ${problem}`);
}
