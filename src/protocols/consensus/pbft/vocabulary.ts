/** The types and options of PBFT: its state, signed values, messages, commands, events and records. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { PerNode } from "../../../core/per-node.ts";
import type { Context, NodeId } from "../../../core/protocol.ts";
import { byzantineQuorum, toleratedByzantine } from "../../../core/quorums.ts";
import { real } from "../../../core/shape.ts";
import type { Signed } from "../../../core/signatures.ts";
import { count, type OptionsOf, option, optionTable, positive, whole } from "../../options.ts";
import type { Command, ReplicatedLog } from "../family/replicated-log.ts";

/** The maximum number of replicas. It bounds the message shapes, regardless of the options. */
export const MAX_REPLICAS = 128;
/** The maximum number of sequence numbers in progress. */
export const MAX_WINDOW = 1_024;
/** The maximum length of a piece of a checkpoint. */
export const MAX_CHUNK_CHARS = 262_144;

/** The number of indexes that each sequence number reserves for the commands of its batch. */
export const INDICES = 1_024;

/** The option table for `pbft()`. */
export const pbftOptions = optionTable(
  "pbft",
  {
    clients: whole(0, "how many nodes are only clients (the ones with the highest ids); the others are replicas"),
    viewChangeMs: positive(
      500,
      "how long a backup waits for a request to be executed before it starts a view change (§4.4); doubled by each view change, halved after eight stable checkpoints",
    ),
    maxViewChangeMs: positive(8_000, "the longest time that a backup waits before it starts a view change"),
    retransmitMs: option(
      real,
      300,
      "a client that gets no reply within this time sends its request to all replicas (§4.1); doubled after each retransmission, halved after eight timely replies; 0 means that it resends only on command",
    ),
    statusMs: option(
      real,
      150,
      "how often a waiting replica reports its state to get missing messages; lengthened together with `viewChangeMs`; 0 means never",
    ),
    checkpointEvery: count(16, "the number of batches between checkpoints (§4.3, K)"),
    window: count(
      32,
      "the distance from the stable checkpoint to the high watermark (§4.3, L); a multiple of `checkpointEvery`",
    ),
    maxBatch: count(64, "the maximum number of requests in a batch", { max: INDICES }),
    maxBatchChars: count(131_072, "the maximum number of characters in a batch"),
    maxInFlight: count(4, "the maximum number of batches in progress; all except the first must be full"),
    maxChunkChars: count(65_536, "the maximum number of characters of the state in one message", {
      max: MAX_CHUNK_CHARS,
    }),
    lastView: whole(0, "the last view to start, so that explorations end; 0 means no limit"),
  },
  ({ checkpointEvery, window, viewChangeMs, maxViewChangeMs }, refuse) => {
    if (window % checkpointEvery !== 0 || window < 2 * checkpointEvery || window > MAX_WINDOW)
      refuse("window", `a multiple of checkpointEvery, from ${2 * checkpointEvery} to ${MAX_WINDOW}`);
    if (maxViewChangeMs < viewChangeMs) refuse("maxViewChangeMs", `a number >= viewChangeMs, which is ${viewChangeMs}`);
  },
);

/** Options for `pbft()`. */
export type PbftOptions = OptionsOf<typeof pbftOptions>;

/** Checks the number of replicas. @throws UsageError if there are none or too many */
export function requireReplicas({ clients }: PbftOptions, nodes: number): void {
  if (clients >= nodes || nodes - clients > MAX_REPLICAS)
    throw new UsageError(
      "bad-option",
      unexpected("pbft.clients", `a number that leaves 1 to ${MAX_REPLICAS} of ${nodes} nodes as replicas`, clients),
    );
}

/** ⟨REQUEST, o, t, c⟩. The client c is the signer, and t is the number of its command. */
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

/** ⟨CHECKPOINT, n, d, i⟩. The state after the first n batches has digest d. */
export interface Checkpoint {
  sequence: number;
  digest: string;
}

/** A proof that an assignment is prepared: the primary's pre-prepare, and the prepares of 2f backups. */
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

/** ⟨REPLY, v, t, c, i, r⟩ to a client that is not a replica. `index` is the command's index in the log. */
export interface Reply {
  view: number;
  client: NodeId;
  sequence: number;
  result: string;
  index: number;
}

/**
 * The votes, certificate and batches that a replica has for a sequence number. `prepares` and `commits` contain the
 * latest vote from each replica.
 */
export interface Slot {
  prePrepare: Signed<Assignment> | null;
  prepares: PerNode<Signed<Assignment>>;
  commits: PerNode<Signed<Assignment>>;
  /** The certificate from the latest view that prepared a batch here. A view change includes it. */
  prepared: Certificate | null;
  /** The digest that 2f + 1 replicas have committed. */
  committed: string | null;
  /** The batches, latest last. A view change may need batches from earlier views again. */
  batches: Batch[];
}

/** Requests that are ordered together. */
export interface Batch {
  digest: string;
  requests: Signed<Request>[];
}

/** The state after the first `sequence` batches. */
interface Snapshot {
  sequence: number;
  digest: string;
  /** For each client: its last command in the snapshot. */
  executed: PerNode<number>;
  text: string;
}

/** A proven checkpoint that this replica has to fetch. */
export interface Goal {
  sequence: number;
  digest: string;
  proof: Signed<Checkpoint>[];
  /** Selects the replica to fetch from among the signers of the proof. */
  source: number;
  /** The parts received so far. */
  executed: PerNode<number>;
  text: string;
}

/** Vocabulary of PBFT. */
export type Pbft = {
  state: {
    /** The nodes that order and execute requests, in ascending order. Other nodes are only clients. */
    replicas: NodeId[];
    /** The current view. Journaled, like `isChanging`, `stable`, `slots` (except commits) and `newView`. */
    view: number;
    /**
     * Whether the replica is between its view change and the new view. During that time it takes no part in agreement.
     */
    isChanging: boolean;
    stable: Snapshot & { proof: Signed<Checkpoint>[] };
    /** The slots above the stable checkpoint and within the window, keyed by sequence number. */
    slots: Record<number, Slot>;
    /** The proof that the view may begin, for replicas that missed it. */
    newView: NewView | null;
    /** All batches up to this sequence number have been executed. */
    executed: number;
    /** For each client: its last executed command. */
    last: PerNode<number>;
    /** The last sequence number that the primary has assigned. */
    assigned: number;
    /** Requests that have not been executed yet, oldest first. At most one per client. */
    pending: { request: Signed<Request>; isAssigned: boolean }[];
    /** The request for which the view-change timer runs. */
    awaited: { client: NodeId; sequence: number } | null;
    /**
     * The number of times the timeouts are doubled. Each view change adds one. Eight stable checkpoints subtract one.
     */
    failures: number;
    /**
     * The number of times that this node's client has doubled its wait. Each retransmission adds one. Eight timely
     * answers subtract one.
     */
    retransmissions: number;
    /** The value of `executed` when the status timer was set. Null if the timer is not running. */
    watched: number | null;
    /**
     * This replica's checkpoints that are not yet stable. `digest` is empty until the state machine supplies the
     * snapshot.
     */
    snapshots: Snapshot[];
    /** For each replica: its last checkpoints, in ascending order. */
    checkpoints: PerNode<Signed<Checkpoint>[]>;
    viewChanges: PerNode<Signed<ViewChange>>;
    goal: Goal | null;
    /**
     * Replicas exposed as Byzantine: they signed two values for one sequence number, or a value that they must not
     * sign.
     */
    exposed: NodeId[];
    /** The command that this node's client has in progress. */
    outstanding: { request: Signed<Request>; replies: PerNode<Reply>; isSentAgain: boolean } | null;
    /** For each client that is not a replica: the last reply to it. */
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
    /** The progress of a waiting replica, and the batches that it lacks. Others resend the messages that it missed. */
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

/** Returns the primary of a view. In view v it is replica v mod N (§4). */
export const primaryOf = ({ replicas }: State, view: number): NodeId => replicas[view % replicas.length] as NodeId;
/** Returns whether a node is a replica and not just a client. */
export const isReplica = ({ replicas }: State, node: NodeId): boolean => replicas.includes(node);
/** Returns whether this node is the primary of the current view. */
export const isPrimary = (state: State, self: NodeId): boolean => primaryOf(state, state.view) === self;

export const others = ({ replicas }: State, { self }: { readonly self: NodeId }): NodeId[] =>
  replicas.filter((replica) => replica !== self);

/** Returns the quorum size: 2f + 1 of 3f + 1. Any two quorums share a correct replica. */
export const quorum = ({ replicas }: State): number => byzantineQuorum(replicas.length);
/** Returns f + 1. At least one of that many replicas is correct. */
export const weakQuorum = ({ replicas }: State): number => toleratedByzantine(replicas.length) + 1;

/** Returns the command of a signed request. */
export const commandOf = ({ by, value }: Signed<Request>): Command => ({ client: by, ...value });

export const isSame = (a: Assignment, b: Assignment): boolean =>
  a.view === b.view && a.sequence === b.sequence && a.digest === b.digest;
