/** What PBFT can be told, and what makes sense. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import { natural, real, struct } from "../../../core/shape.ts";
import { requirePositive, settle } from "../../options.ts";
import { INDICES } from "./vocabulary.ts";

export interface PbftOptions {
  /** So many nodes, those with the highest ids, are clients only; all others are replicas. */
  clients: number;
  /** §4.4: how long a backup waits for a request to be executed. Each view change doubles it, up to the most; eight stable checkpoints make up for one. */
  viewChangeMs: number;
  maxViewChangeMs: number;
  /** §4.1: a client that has no answer by then asks all replicas. Doubled each time that it had to; eight answers in time make up for one. 0: when it is told to. */
  retransmitMs: number;
  /** A replica that waits for something tells the others so often where it stands; lengthened as `viewChangeMs` is. 0: never. */
  statusMs: number;
  /** §4.3, K: a checkpoint is taken after so many batches. */
  checkpointEvery: number;
  /** §4.3, L: the high watermark is so far above the stable checkpoint. A multiple of K. */
  window: number;
  /** What one batch holds at most. */
  maxBatch: number;
  maxBatchChars: number;
  /** How many batches are on their way at a time, all but the first of them full; what comes meanwhile is in the next. */
  maxInFlight: number;
  /** How much of a state one message holds. */
  maxChunkChars: number;
  /** The last view that is begun, for explorations that are to end. 0: there is none. */
  lastView: number;
}

const defaults: PbftOptions = {
  clients: 0,
  viewChangeMs: 500,
  maxViewChangeMs: 8_000,
  retransmitMs: 300,
  statusMs: 150,
  checkpointEvery: 16,
  window: 32,
  maxBatch: 64,
  maxBatchChars: 131_072,
  maxInFlight: 4,
  maxChunkChars: 65_536,
  lastView: 0,
};

/** What a message may hold, whatever the options: the bounds of its shape. */
export const MAX_REPLICAS = 128;
export const MAX_WINDOW = 1_024;
export const MAX_CHUNK_CHARS = 262_144;

const optionShape = struct<PbftOptions>({
  clients: natural,
  viewChangeMs: real,
  maxViewChangeMs: real,
  retransmitMs: real,
  statusMs: real,
  checkpointEvery: natural,
  window: natural,
  maxBatch: natural,
  maxBatchChars: natural,
  maxInFlight: natural,
  maxChunkChars: natural,
  lastView: natural,
});

const positive = [
  "viewChangeMs",
  "maxViewChangeMs",
  "checkpointEvery",
  "window",
  "maxBatch",
  "maxBatchChars",
  "maxInFlight",
  "maxChunkChars",
] as const;

/** @throws UsageError */
export function settled(given: Partial<PbftOptions> | undefined): PbftOptions {
  const options = settle(defaults, optionShape, given, "pbft");
  for (const name of positive) requirePositive(`pbft.${name}`, options[name]);
  const refuse = (name: keyof PbftOptions, wanted: string): never => {
    throw new UsageError("bad-option", unexpected(`pbft.${name}`, wanted, options[name]));
  };
  const { checkpointEvery, window, maxBatch, maxChunkChars, viewChangeMs, maxViewChangeMs } = options;
  if (window % checkpointEvery !== 0 || window < 2 * checkpointEvery || window > MAX_WINDOW)
    refuse("window", `a multiple of checkpointEvery, from ${2 * checkpointEvery} to ${MAX_WINDOW}`);
  if (maxBatch > INDICES) refuse("maxBatch", `at most ${INDICES}`);
  if (maxChunkChars > MAX_CHUNK_CHARS) refuse("maxChunkChars", `at most ${MAX_CHUNK_CHARS}`);
  if (maxViewChangeMs < viewChangeMs) refuse("maxViewChangeMs", `a number >= viewChangeMs, which is ${viewChangeMs}`);
  return options;
}

/** @throws UsageError if no node is a replica. */
export function requireReplicas({ clients }: PbftOptions, nodes: number): void {
  if (clients >= nodes || nodes - clients > MAX_REPLICAS)
    throw new UsageError(
      "bad-option",
      unexpected("pbft.clients", `a number that leaves 1 to ${MAX_REPLICAS} of ${nodes} nodes as replicas`, clients),
    );
}
