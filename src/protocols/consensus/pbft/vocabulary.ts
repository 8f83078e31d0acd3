/** The words of PBFT: its state, what is signed, sent, journalled and said, and what can be told from a state. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { PerNode } from "../../../core/per-node.ts";
import type { Context, NodeId } from "../../../core/protocol.ts";
import { byzantineQuorum, toleratedByzantine } from "../../../core/quorums.ts";
import { real } from "../../../core/shape.ts";
import type { Signed } from "../../../core/signatures.ts";
import { count, type OptionsOf, option, optionTable, positive, whole } from "../../options.ts";
import type { Command, ReplicatedLog } from "../family/replicated-log.ts";

/** What a message may hold, whatever the options: the bounds of its shape. */
export const MAX_REPLICAS = 128;
export const MAX_WINDOW = 1_024;
export const MAX_CHUNK_CHARS = 262_144;

/** What commands of one batch have as their indices: each sequence number has room for so many. */
export const INDICES = 1_024;

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

/** ⟨REQUEST, o, t, c⟩: the signer is c; its commands are numbered, and that number is t. */
export interface Request {
  sequence: number;
  operation: string;
}

/** At this place of the order, in this view, stands what has this digest. Signed as a pre-prepare, a prepare or a commit. */
export interface Assignment {
  view: number;
  sequence: number;
  digest: string;
}

/** ⟨CHECKPOINT, n, d, i⟩: what the state after the first n batches has as its digest. */
export interface Checkpoint {
  sequence: number;
  digest: string;
}

/** What shows that an assignment is prepared: the primary's pre-prepare, and prepares of 2f others. */
export interface Certificate {
  prePrepare: Signed<Assignment>;
  prepares: Signed<Assignment>[];
}

/** ⟨VIEW-CHANGE, v, n, C, P, i⟩: `stable` is n, `proof` C, `prepared` P with at most one certificate for a sequence number. */
export interface ViewChange {
  view: number;
  stable: number;
  proof: Signed<Checkpoint>[];
  prepared: Certificate[];
}

/** ⟨NEW-VIEW, v, V, O⟩. All in it is signed, so anybody may pass it on. */
export interface NewView {
  view: number;
  viewChanges: Signed<ViewChange>[];
  prePrepares: Signed<Assignment>[];
}

/** ⟨REPLY, v, t, c, i, r⟩ to a client that is apart. `index`: where the state machine was when it had applied it. */
export interface Reply {
  view: number;
  client: NodeId;
  sequence: number;
  result: string;
  index: number;
}

/** What a replica knows of one sequence number: of each other replica the latest that it has signed. */
export interface Slot {
  prePrepare: Signed<Assignment> | null;
  prepares: PerNode<Signed<Assignment>>;
  commits: PerNode<Signed<Assignment>>;
  /** Of the latest view in which it was prepared here: what a view change tells of it. */
  prepared: Certificate | null;
  /** The digest that 2f + 1 have committed. */
  committed: string | null;
  /** The latest last. Those of older views may be wanted again by a view change. */
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
  /** Of each client, the last command of which is in it. */
  executed: PerNode<number>;
  text: string;
}

/** Known to be right, though this replica does not have it. */
export interface Goal {
  sequence: number;
  digest: string;
  proof: Signed<Checkpoint>[];
  /** Which of those that vouch for it is asked. */
  source: number;
  /** What of it has come. */
  executed: PerNode<number>;
  text: string;
}

export type Pbft = {
  state: {
    /** Who orders and executes, ascending; other nodes are clients only. */
    replicas: NodeId[];
    /** Journalled, like `isChanging`, `stable`, `slots` (but for commits) and `newView`. */
    view: number;
    /** Between its view change and the new view a replica takes part in no agreement. */
    isChanging: boolean;
    stable: Snapshot & { proof: Signed<Checkpoint>[] };
    /** By sequence number, above the stable checkpoint and within the window. */
    slots: Record<number, Slot>;
    /** What has shown that the view may begin, for those who have missed it. */
    newView: NewView | null;
    /** Up to this sequence number all is executed. */
    executed: number;
    /** Of each client, its last command that is executed. */
    last: PerNode<number>;
    /** Up to this sequence number the primary has assigned. */
    assigned: number;
    /** Requests that are not executed, at most one of a client; the oldest first. */
    pending: { request: Signed<Request>; isAssigned: boolean }[];
    /** For which of them the view-change timer runs. */
    awaited: { client: NodeId; sequence: number } | null;
    /** View changes, of which eight stable checkpoints make up for one: each doubles the time-outs. */
    failures: number;
    /** Of its own client: requests sent again, of which eight that were answered in time make up for one. */
    retransmissions: number;
    /** The status timer runs, and `executed` was this when it was set. */
    watched: number | null;
    /** Its own, not stable yet; `digest` is empty until the state machine has handed in its snapshot. */
    snapshots: Snapshot[];
    /** The last checkpoints of each replica, ascending. */
    checkpoints: PerNode<Signed<Checkpoint>[]>;
    viewChanges: PerNode<Signed<ViewChange>>;
    goal: Goal | null;
    /** Who has signed what no correct replica signs: two things for one place, or what is not its to say. */
    exposed: NodeId[];
    /** The command that this node's own client has under way. */
    outstanding: { request: Signed<Request>; replies: PerNode<Reply>; isSentAgain: boolean } | null;
    /** The last one sent to each client that is apart. */
    replies: PerNode<Reply>;
  };
  message: /** From a client, or passed on. */
    | { type: "request"; request: Signed<Request> }
    | { type: "prePrepare"; prePrepare: Signed<Assignment>; requests: Signed<Request>[] }
    | { type: "prepare"; prepare: Signed<Assignment> }
    | { type: "commit"; commit: Signed<Assignment> }
    | { type: "reply"; reply: Signed<Reply> }
    | { type: "checkpoint"; checkpoint: Signed<Checkpoint> }
    | { type: "viewChange"; viewChange: Signed<ViewChange> }
    | ({ type: "newView" } & NewView)
    /** Where a replica stands that waits for something, and which batches it lacks. Others send again what it has missed. */
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

/** 2f + 1 of 3f + 1: any two such sets meet in a correct replica. */
export const quorum = ({ replicas }: State): number => byzantineQuorum(replicas.length);
/** f + 1: one of them at least is correct. */
export const weakQuorum = ({ replicas }: State): number => toleratedByzantine(replicas.length) + 1;

export const commandOf = ({ by, value }: Signed<Request>): Command => ({ client: by, ...value });

export const isSame = (a: Assignment, b: Assignment): boolean =>
  a.view === b.view && a.sequence === b.sequence && a.digest === b.digest;
