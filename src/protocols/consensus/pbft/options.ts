/** The options of PBFT. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import { real } from "../../../core/shape.ts";
import { count, type OptionsOf, option, optionTable, positive, whole } from "../../options.ts";
import { INDICES } from "./vocabulary.ts";

/** What a message may hold, whatever the options: the bounds of its shape. */
export const MAX_REPLICAS = 128;
export const MAX_WINDOW = 1_024;
export const MAX_CHUNK_CHARS = 262_144;

export const pbftOptions = optionTable(
  "pbft",
  {
    clients: whole(0, "how many nodes, those with the highest ids, are clients only; the others are replicas"),
    viewChangeMs: positive(
      500,
      "how long a backup waits for a request to be executed (§4.4); doubled by each view change, and halved after eight stable checkpoints",
    ),
    maxViewChangeMs: positive(8_000, "the longest such wait"),
    retransmitMs: option(
      real,
      300,
      "a client that has no answer after this time asks all replicas (§4.1); doubled each time, and halved after eight answers in time; 0: on command only",
    ),
    statusMs: option(
      real,
      150,
      "a replica that is waiting reports its state this often, to get what it lacks; lengthened as `viewChangeMs` is; 0: never",
    ),
    checkpointEvery: count(16, "a checkpoint is taken after this many batches (§4.3, K)"),
    window: count(
      32,
      "how far the high watermark is above the stable checkpoint (§4.3, L); a multiple of `checkpointEvery`",
    ),
    maxBatch: count(64, "how many requests a batch holds", { max: INDICES }),
    maxBatchChars: count(131_072, "how many characters a batch holds"),
    maxInFlight: count(4, "how many batches are under way at a time, all except the first of them full"),
    maxChunkChars: count(65_536, "how many characters of a state one message holds", { max: MAX_CHUNK_CHARS }),
    lastView: whole(0, "the last view that is started, so that explorations end; 0: there is none"),
  },
  ({ checkpointEvery, window, viewChangeMs, maxViewChangeMs }, refuse) => {
    if (window % checkpointEvery !== 0 || window < 2 * checkpointEvery || window > MAX_WINDOW)
      refuse("window", `a multiple of checkpointEvery, from ${2 * checkpointEvery} to ${MAX_WINDOW}`);
    if (maxViewChangeMs < viewChangeMs) refuse("maxViewChangeMs", `a number >= viewChangeMs, which is ${viewChangeMs}`);
  },
);

export type PbftOptions = OptionsOf<typeof pbftOptions>;

/** @throws UsageError if no node is a replica. */
export function requireReplicas({ clients }: PbftOptions, nodes: number): void {
  if (clients >= nodes || nodes - clients > MAX_REPLICAS)
    throw new UsageError(
      "bad-option",
      unexpected("pbft.clients", `a number that leaves 1 to ${MAX_REPLICAS} of ${nodes} nodes as replicas`, clients),
    );
}
