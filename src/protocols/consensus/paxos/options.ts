/** What may be set of Paxos: who does what, what a quorum is, who tells the learners, and when to try again. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { boolean, list, natural, nullable, oneOf, real, struct } from "../../../core/shape.ts";
import { requirePositive, settle } from "../../options.ts";
import { type Quorums, quorumsProblem, quorumsShape } from "../parts/quorum-systems.ts";

export interface PaxosOptions {
  /** After so long without a quorum a proposer tries again with a higher ballot. */
  patienceMs: number;
  /** After a nack it waits a random time between these two, so that duellists miss each other. */
  minBackOffMs: number;
  maxBackOffMs: number;
  /** If not, it tries again at once: then two proposers may refuse each other for ever. */
  backsOff: boolean;
  /**
   * An acceptor that has accepted a value, and not heard for so long that it is decided, proposes it itself; a proposer that
   * has decided reminds those that it has not heard from, at first after so long.
   */
  learnMs: number;
  /** Who proposes, accepts and learns; null: everybody. */
  proposers: NodeId[] | null;
  acceptors: NodeId[] | null;
  learners: NodeId[] | null;
  /** Of the acceptors. */
  quorums: Quorums;
  /** Whom acceptors tell: every learner; or the proposer alone, which then tells the learners, as the distinguished one. */
  acceptorsTell: "learners" | "proposer";
}

const defaults: PaxosOptions = {
  patienceMs: 1_000,
  minBackOffMs: 10,
  maxBackOffMs: 200,
  backsOff: true,
  learnMs: 2_000,
  proposers: null,
  acceptors: null,
  learners: null,
  quorums: { type: "majority" },
  acceptorsTell: "learners",
};

const nodes = nullable(list(natural, 1_000));

const optionShape = struct<PaxosOptions>({
  patienceMs: real,
  minBackOffMs: real,
  maxBackOffMs: real,
  backsOff: boolean,
  learnMs: real,
  proposers: nodes,
  acceptors: nodes,
  learners: nodes,
  quorums: quorumsShape,
  acceptorsTell: oneOf("learners", "proposer"),
});

/** @throws UsageError for options that there are not, or that are none. */
export function settledOptions(given?: Partial<PaxosOptions>): PaxosOptions {
  const options = settle(defaults, optionShape, given, "paxos");
  for (const name of ["patienceMs", "minBackOffMs", "maxBackOffMs", "learnMs"] as const)
    requirePositive(`paxos.${name}`, options[name]);
  return options;
}

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
