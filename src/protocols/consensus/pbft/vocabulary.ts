/** Types and options of PBFT: its state, signed values, messages, commands, events and records. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { PerNode } from "../../../core/per-node.ts";
import type { Context, NodeId } from "../../../core/protocol.ts";
import { byzantineQuorum, toleratedByzantine } from "../../../core/quorums.ts";
import { real } from "../../../core/shape.ts";
import type { Signed } from "../../../core/signatures.ts";
import { count, type OptionsOf, option, optionTable, positive, whole } from "../../options.ts";
import type { Command, ReplicatedLog } from "../family/replicated-log.ts";

/** Limits of messages for any options. They bound the shapes. */
export const MAX_REPLICAS = 128;
export const MAX_WINDOW = 1_024;
export const MAX_CHUNK_CHARS = 262_144;

/** How many indices each sequence number reserves for the commands of its batch. */
export const INDICES = 1_024;

export const pbftOptions = optionTable(
  "pbft",
  {
    clients: whole(0, "how many of the nodes with the highest ids are only clients; the others are replicas"),
    viewChangeMs: positive(
      500,
      "how long a backup waits for a request to be executed before it starts a view change (§4.4); doubled by each view change, halved after eight stable checkpoints",
    ),
    maxViewChangeMs: positive(8_000, "the longest such wait"),
    retransmitMs: option(
      real,
      300,
      "a client without a reply after this time sends its request to all replicas (§4.1); doubled each time, halved after eight replies in time; 0: on command only",
    ),
    statusMs: option(
      real,
      150,
      "how often a waiting replica reports its state to get missing messages; lengthened together with `viewChangeMs`; 0: never",
    ),
    checkpointEvery: count(16, "the number of batches between checkpoints (§4.3, K)"),
    window: count(
      32,
      "the distance from the stable checkpoint to the high watermark (§4.3, L); a multiple of `checkpointEvery`",
    ),
    maxBatch: count(64, "the maximum number of requests in a batch", { max: INDICES }),
    maxBatchChars: count(131_072, "the maximum number of characters in a batch"),
    maxInFlight: count(4, "the maximum number of batches in progress; all except the first are full"),
    maxChunkChars: count(65_536, "the maximum number of characters of state in one message", { max: MAX_CHUNK_CHARS }),
    lastView: whole(0, "the last view to start, so that explorations end; 0: unlimited"),
  },
  ({ checkpointEvery, window, viewChangeMs, maxViewChangeMs }, refuse) => {
    if (window % checkpointEvery !== 0 || window < 2 * checkpointEvery || window > MAX_WINDOW)
      refuse("window", `a multiple of checkpointEvery, from ${2 * checkpointEvery} to ${MAX_WINDOW}`);
    if (maxViewChangeMs < viewChangeMs) refuse("maxViewChangeMs", `a number >= viewChangeMs, which is ${viewChangeMs}`);
  },
);

export type PbftOptions = OptionsOf<typeof pbftOptions>;

/** @throws UsageError if no node is a replica, or too many are. */
export function requireReplicas({ clients }: PbftOptions, nodes: number): void {
  if (clients >= nodes || nodes - clients > MAX_REPLICAS)
    throw new UsageError(
      "bad-option",
      unexpected("pbft.clients", `a number that leaves 1 to ${MAX_REPLICAS} of ${nodes} nodes as replicas`, clients),
    );
}

/** ⟨REQUEST, o, t, c⟩. The signer is the client c, and the number of its command is t. */
export interface Request {
  sequence: number;
  operation: string;
}

/** Assigns a digest to a sequence number in a view. Signed as a pre-prepare, a prepare or a commit. */
export interface Assignment {
  view: number;
  sequence: number;
  digest: string;
}

/** ⟨CHECKPOINT, n, d, i⟩. The state after the first n batches has the digest d. */
export interface Checkpoint {
  sequence: number;
  digest: string;
}

/** Proves that an assignment is prepared: the primary's pre-prepare, and prepares of 2f others. */
export interface Certificate {
  prePrepare: Signed<Assignment>;
  prepares: Signed<Assignment>[];
}

/**
 * ⟨VIEW-CHANGE, v, n, C, P, i⟩. `stable` is n, `proof` is C, and `prepared` is P with at most one certificate per
 * sequence number.
 */
export interface ViewChange {
  view: number;
  stable: number;
  proof: Signed<Checkpoint>[];
  prepared: Certificate[];
}

/** ⟨NEW-VIEW, v, V, O⟩. All parts are signed, so any node may forward it. */
export interface NewView {
  view: number;
  viewChanges: Signed<ViewChange>[];
  prePrepares: Signed<Assignment>[];
}

/** ⟨REPLY, v, t, c, i, r⟩ to a client that is not a replica. `index` is the index of the command in the log. */
export interface Reply {
  view: number;
  client: NodeId;
  sequence: number;
  result: string;
  index: number;
}

/** A replica's knowledge of one sequence number. `prepares` and `commits` hold the latest vote of each replica. */
export interface Slot {
  prePrepare: Signed<Assignment> | null;
  prepares: PerNode<Signed<Assignment>>;
  commits: PerNode<Signed<Assignment>>;
  /** From the latest view that prepared it here. A view change includes it. */
  prepared: Certificate | null;
  /** The digest that 2f + 1 replicas have committed. */
  committed: string | null;
  /** The latest is last. A view change may need batches of older views again. */
  batches: Batch[];
}

export interface Batch {
  digest: string;
  requests: Signed<Request>[];
}

/** The state after the first `sequence` batches. */
interface Snapshot {
  sequence: number;
  digest: string;
  /** The last command of each client in the snapshot. */
  executed: PerNode<number>;
  text: string;
}

/** A proven checkpoint that this replica has to fetch. */
export interface Goal {
  sequence: number;
  digest: string;
  proof: Signed<Checkpoint>[];
  /** Selects the replica to fetch from, among the signers of the proof. */
  source: number;
  /** The parts received so far. */
  executed: PerNode<number>;
  text: string;
}

export type Pbft = {
  state: {
    /** The nodes that order and execute, ascending; other nodes are clients only. */
    replicas: NodeId[];
    /** Journalled, like `isChanging`, `stable`, `slots` (except commits) and `newView`. */
    view: number;
    /** Between its view change and the new view a replica takes part in no agreement. */
    isChanging: boolean;
    stable: Snapshot & { proof: Signed<Checkpoint>[] };
    /** By sequence number, above the stable checkpoint and within the window. */
    slots: Record<number, Slot>;
    /** The proof that the view may begin, for replicas that missed it. */
    newView: NewView | null;
    /** All batches up to this sequence number are executed. */
    executed: number;
    /** The last executed command of each client. */
    last: PerNode<number>;
    /** The last sequence number that the primary has assigned. */
    assigned: number;
    /** Requests that are not executed, at most one per client; the oldest first. */
    pending: { request: Signed<Request>; isAssigned: boolean }[];
    /** The request that the view-change timer runs for. */
    awaited: { client: NodeId; sequence: number } | null;
    /** Each view change doubles the timeouts. Eight stable checkpoints cancel one view change. */
    failures: number;
    /** For its own client: each request sent again doubles the wait. Eight answers in time cancel one of them. */
    retransmissions: number;
    /** Not null while the status timer runs: the value of `executed` when it was set. */
    watched: number | null;
    /**
     * Its own checkpoints that are not stable yet. `digest` is empty until the state machine has supplied the snapshot.
     */
    snapshots: Snapshot[];
    /** The last checkpoints of each replica, ascending. */
    checkpoints: PerNode<Signed<Checkpoint>[]>;
    viewChanges: PerNode<Signed<ViewChange>>;
    goal: Goal | null;
    /**
     * Replicas exposed as Byzantine: they signed two values for one sequence number, or a value that was not theirs to
     * sign.
     */
    exposed: NodeId[];
    /** The command of this node's own client that is in progress. */
    outstanding: { request: Signed<Request>; replies: PerNode<Reply>; isSentAgain: boolean } | null;
    /** The last reply to each client that is not a replica. */
    replies: PerNode<Reply>;
  };
  message: /** From a client, or forwarded. */
    | { type: "request"; request: Signed<Request> }
    | { type: "prePrepare"; prePrepare: Signed<Assignment>; requests: Signed<Request>[] }
    | { type: "prepare"; prepare: Signed<Assignment> }
    | { type: "commit"; commit: Signed<Assignment> }
    | { type: "reply"; reply: Signed<Reply> }
    | { type: "checkpoint"; checkpoint: Signed<Checkpoint> }
    | { type: "viewChange"; viewChange: Signed<ViewChange> }
    | ({ type: "newView" } & NewView)
    /**
     * The progress of a replica that is waiting, and the batches that it lacks. Others repeat the messages that it
     * missed.
     */
    | { type: "status"; view: number; isChanging: boolean; stable: number; executed: number; wanted: string[] }
    | { type: "batch"; sequence: number; requests: Signed<Request>[] }
    | { type: "fetch"; sequence: number; position: number }
    | { type: "state"; sequence: number; position: number; executed: PerNode<number>; text: string; isLast: boolean };
  timer: "viewChange" | "status" | "retransmit";
  command: Extract<ReplicatedLog["command"], { type: "propose" | "compact" | "reply" }>;
  event: Extract<
    ReplicatedLog["event"],
    { type: "decided" | "installed" | "led" | "checkpoint" | "answered" | "exposed" }
  >;
  record:
    | { type: "view"; view: number; isChanging: boolean }
    | { type: "batch"; sequence: number; requests: Signed<Request>[] }
    | { type: "prePrepared"; prePrepare: Signed<Assignment> }
    | ({ type: "prepared" } & Certificate)
    | { type: "stable"; sequence: number; digest: string; executed: PerNode<number>; proof: Signed<Checkpoint>[] }
    | { type: "stableText"; text: string }
    | ({ type: "newView" } & NewView);
};

export type State = Pbft["state"];
export type Ctx = Context<Pbft>;

/** The primary of view v is replica v mod N (§4). */
export const primaryOf = ({ replicas }: State, view: number): NodeId => replicas[view % replicas.length] as NodeId;
export const isReplica = ({ replicas }: State, node: NodeId): boolean => replicas.includes(node);
export const isPrimary = (state: State, self: NodeId): boolean => primaryOf(state, state.view) === self;

export const others = ({ replicas }: State, { self }: { readonly self: NodeId }): NodeId[] =>
  replicas.filter((replica) => replica !== self);

/** 2f + 1 of 3f + 1: any two such sets share a correct replica. */
export const quorum = ({ replicas }: State): number => byzantineQuorum(replicas.length);
/** f + 1: at least one of them is correct. */
export const weakQuorum = ({ replicas }: State): number => toleratedByzantine(replicas.length) + 1;

export const commandOf = ({ by, value }: Signed<Request>): Command => ({ client: by, ...value });

export const isSame = (a: Assignment, b: Assignment): boolean =>
  a.view === b.view && a.sequence === b.sequence && a.digest === b.digest;
