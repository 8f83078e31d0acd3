/** The options of Fast Paxos, and the settings derived from them. */

import type { Context } from "../../../core/protocol.ts";
import { oneOf } from "../../../core/shape.ts";
import { count, type OptionsOf, option, optionTable, positive, whole } from "../../options.ts";
import { type QuorumChoice, type Quorums, quorumSizes } from "../parts/fast-quorums.ts";
import { type FastPaxos, MAX_WINDOW } from "./vocabulary.ts";

const fastPaxosOptions = optionTable("fast-paxos", {
  quorums: option<QuorumChoice>(oneOf("majority", "equal"), "majority", "how quorums are sized; equal at all nodes"),
  classicQuorum: whole(0, "the size of a classic quorum, equal at all nodes; 0: as `quorums` says"),
  fastQuorum: whole(0, "the size of a fast quorum, equal at all nodes; 0: as `quorums` says"),
  recovery: option(
    oneOf("coordinated", "uncoordinated"),
    "coordinated",
    "how a collision ends, equal at all nodes: by the coordinator, two message delays later, or by the acceptors, one delay later",
  ),
  patienceMs: positive(
    1_000,
    "a node becomes coordinator after this time without a message from one, up to twice as long",
  ),
  heartbeatMs: positive(200, "the time between heartbeats of the coordinator"),
  window: count(100, "how many instances may be undecided at a time", { max: MAX_WINDOW }),
  instances: whole(0, "the log ends after this many instances: 1 is the paper's single decree; 0: it does not end"),
  maxProposals: count(
    1_000,
    "how many commands of its own a node keeps until they are decided; further ones are dropped",
  ),
});

export type FastPaxosOptions = OptionsOf<typeof fastPaxosOptions>;

export interface Settings extends FastPaxosOptions {
  quorumsOf(nodes: number): Quorums;
}

export type Ctx = Context<FastPaxos>;

export function settled(given: Partial<FastPaxosOptions> | undefined): Settings {
  const options = fastPaxosOptions.settle(given);
  const { quorums, classicQuorum: classic, fastQuorum: fast } = options;
  return { ...options, quorumsOf: quorumSizes(quorums, { classic, fast }) };
}
