/** The options of Generalized Paxos, and the settings derived from them. */
import type { Context } from "../../../core/protocol.ts";
import { oneOf } from "../../../core/shape.ts";
import { count, type OptionsOf, option, optionTable, positive, whole } from "../../options.ts";
import { type Quorums, quorumSizes } from "../parts/fast-quorums.ts";
import { type Interferes, interference, type Relation, relations } from "./interference.ts";
import type { GeneralizedPaxos } from "./vocabulary.ts";

const MAX_CHECKPOINT_EVERY = 1_000;

const generalizedPaxosOptions = optionTable("generalized-paxos", {
  interference: option<Relation>(
    oneOf(...relations),
    "all",
    "which commands do not commute, equal at all nodes and true of the state machine: `by-key` for the map",
  ),
  checkpointEvery: count(
    32,
    "the number of commands after which the coordinator asks for a checkpoint, and histories start again",
    {
      max: MAX_CHECKPOINT_EVERY,
    },
  ),
  classicQuorum: whole(0, "the size of a classic quorum, equal at all nodes; 0: a majority"),
  fastQuorum: whole(0, "the size of a fast quorum, equal at all nodes; 0: ⌈3N/4⌉"),
  patienceMs: positive(
    1_000,
    "a node becomes coordinator after this time without a message from one, up to twice as long",
  ),
  heartbeatMs: positive(200, "the time between heartbeats of the coordinator"),
  recoverMs: positive(
    300,
    "the coordinator recovers a command that is not decided for this time, with a higher ballot",
  ),
  maxPending: count(1_000, "how many commands an acceptor keeps until it may append them; further ones are dropped"),
});

export type GeneralizedPaxosOptions = OptionsOf<typeof generalizedPaxosOptions>;

export interface Settings extends GeneralizedPaxosOptions {
  quorumsOf(nodes: number): Quorums;
  readonly interferes: Interferes;
}

export type Ctx = Context<GeneralizedPaxos>;

export function settled(given: Partial<GeneralizedPaxosOptions> | undefined): Settings {
  const options = generalizedPaxosOptions.settle(given);
  const { classicQuorum: classic, fastQuorum: fast } = options;
  return {
    ...options,
    quorumsOf: quorumSizes("majority", { classic, fast }),
    interferes: interference(options.interference),
  };
}
