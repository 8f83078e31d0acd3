/** What may be set of Generalized Paxos, and what follows from it. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { Context } from "../../../core/protocol.ts";
import { natural, oneOf, real, struct } from "../../../core/shape.ts";
import { requirePositive, settle } from "../../options.ts";
import { type Quorums, quorumSizes } from "../parts/fast-quorums.ts";
import { type Interferes, interference, type Relation, relations } from "./interference.ts";
import type { GeneralizedPaxos } from "./vocabulary.ts";

export interface GeneralizedPaxosOptions {
  /** Which commands do not commute. Equal at all nodes, and true of the state machine: `by-key` for the map. */
  interference: Relation;
  /** After so many commands the coordinator asks for a checkpoint, and histories begin anew. */
  checkpointEvery: number;
  /** Sizes of quorums, equal at all nodes; 0: a majority, and ⌈3N/4⌉. */
  classicQuorum: number;
  fastQuorum: number;
  /** Without word from a coordinator for this time, up to twice as long, a node becomes it. */
  patienceMs: number;
  heartbeatMs: number;
  /** What hangs for so long the coordinator recovers with a higher ballot. */
  recoverMs: number;
  /** How many commands an acceptor keeps until it may append them; further ones are dropped. */
  maxPending: number;
}

const defaults: GeneralizedPaxosOptions = {
  interference: "all",
  checkpointEvery: 32,
  classicQuorum: 0,
  fastQuorum: 0,
  patienceMs: 1_000,
  heartbeatMs: 200,
  recoverMs: 300,
  maxPending: 1_000,
};

const optionShape = struct<GeneralizedPaxosOptions>({
  interference: oneOf(...relations),
  checkpointEvery: natural,
  classicQuorum: natural,
  fastQuorum: natural,
  patienceMs: real,
  heartbeatMs: real,
  recoverMs: real,
  maxPending: natural,
});

const MAX_CHECKPOINT_EVERY = 1_000;

export interface Settings extends GeneralizedPaxosOptions {
  quorumsOf(nodes: number): Quorums;
  readonly interferes: Interferes;
}

export type Ctx = Context<GeneralizedPaxos>;

export function settled(given: Partial<GeneralizedPaxosOptions> | undefined): Settings {
  const options = settle(defaults, optionShape, given, "generalized-paxos");
  for (const name of ["checkpointEvery", "patienceMs", "heartbeatMs", "recoverMs", "maxPending"] as const)
    requirePositive(`generalized-paxos.${name}`, options[name]);
  const { checkpointEvery, classicQuorum: classic, fastQuorum: fast } = options;
  if (checkpointEvery > MAX_CHECKPOINT_EVERY)
    throw new UsageError(
      "bad-option",
      unexpected("generalized-paxos.checkpointEvery", `at most ${MAX_CHECKPOINT_EVERY}`, checkpointEvery),
    );
  return {
    ...options,
    quorumsOf: quorumSizes("majority", { classic, fast }),
    interferes: interference(options.interference),
  };
}
