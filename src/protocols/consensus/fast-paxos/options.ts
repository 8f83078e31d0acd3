/** What may be set of Fast Paxos, and what follows from it. */

import { UsageError, unexpected } from "../../../core/errors.ts";
import type { Context } from "../../../core/protocol.ts";
import { natural, oneOf, real, struct } from "../../../core/shape.ts";
import { requirePositive, settle } from "../../options.ts";
import { type QuorumChoice, type Quorums, quorumSizes } from "../parts/fast-quorums.ts";
import { type FastPaxos, MAX_WINDOW } from "./vocabulary.ts";

export interface FastPaxosOptions {
  /** Equal at all nodes, as the sizes below. */
  quorums: QuorumChoice;
  /** The size of a classic and of a fast quorum; 0: as `quorums` says. */
  classicQuorum: number;
  fastQuorum: number;
  /** Who ends a collision: the coordinator, two delays later, or the acceptors by themselves, one delay later. Equal at all nodes. */
  recovery: "coordinated" | "uncoordinated";
  /** Without word from a coordinator for this time, up to twice as long, a node becomes it. What hangs as long is recovered. */
  patienceMs: number;
  heartbeatMs: number;
  /** How many instances may be undecided at a time. */
  window: number;
  /** The log ends after so many: 1 is the paper's single decree. 0: it does not end. */
  instances: number;
  /** How many commands of its own a node keeps until they are decided; further ones are dropped. */
  maxProposals: number;
}

const defaults: FastPaxosOptions = {
  quorums: "majority",
  classicQuorum: 0,
  fastQuorum: 0,
  recovery: "coordinated",
  patienceMs: 1_000,
  heartbeatMs: 200,
  window: 100,
  instances: 0,
  maxProposals: 1_000,
};

const optionShape = struct<FastPaxosOptions>({
  quorums: oneOf("majority", "equal"),
  classicQuorum: natural,
  fastQuorum: natural,
  recovery: oneOf("coordinated", "uncoordinated"),
  patienceMs: real,
  heartbeatMs: real,
  window: natural,
  instances: natural,
  maxProposals: natural,
});

export interface Settings extends FastPaxosOptions {
  quorumsOf(nodes: number): Quorums;
}

export type Ctx = Context<FastPaxos>;

export function settled(given: Partial<FastPaxosOptions> | undefined): Settings {
  const options = settle(defaults, optionShape, given, "fast-paxos");
  for (const name of ["patienceMs", "heartbeatMs", "window", "maxProposals"] as const)
    requirePositive(`fast-paxos.${name}`, options[name]);
  if (options.window > MAX_WINDOW)
    throw new UsageError("bad-option", unexpected("fast-paxos.window", `at most ${MAX_WINDOW}`, options.window));
  const { quorums, classicQuorum: classic, fastQuorum: fast } = options;
  return { ...options, quorumsOf: quorumSizes(quorums, { classic, fast }) };
}
