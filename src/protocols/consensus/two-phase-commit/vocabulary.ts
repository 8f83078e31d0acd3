/** What coordinators and participants of two-phase commit remember, say and journal. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { list, natural, nullable, oneOf, perNode, type Shapes, struct } from "../../../core/shape.ts";
import { flag, type OptionsOf, optionTable, positive } from "../../options.ts";

/** The numbers of a coordinator only grow, over its crashes too, so none of its transactions has the name of another. */
export interface Transaction {
  coordinator: NodeId;
  number: number;
}

export type Decision = "commit" | "abort";

/** The last transaction of some coordinator in which this node took part. */
export interface Part {
  transaction: Transaction;
  /** In doubt: it has voted yes, and may not decide by itself any more. */
  status: "in doubt" | Decision;
}

export type TwoPhaseCommit = {
  /** Every node may coordinate transactions of its own, and takes part in those of all others. */
  state: {
    /** Of the last transaction that it began. */
    number: number;
    /** Numbers up to this one are journalled as used. */
    reserved: number;
    /** How many transactions it is still to begin. */
    wanted: number;
    coordinator: Coordinator;
    /** Whether it votes yes. */
    isWilling: boolean;
    /** By coordinator. */
    parts: Record<NodeId, Part>;
  };
  message:
    | { type: "voteRequest"; transaction: Transaction }
    | { type: "vote"; transaction: Transaction; vote: "yes" | "no" }
    | { type: "decision"; transaction: Transaction; decision: Decision }
    | { type: "acknowledgement"; transaction: Transaction }
    /** Of a node in doubt: what was decided? */
    | { type: "inquiry"; transaction: Transaction };
  timer: "votes" | "acknowledgements" | "decision";
  command: /** Begin so many transactions, one after the other. */
    | { type: "propose"; transactions: number }
    /** Vote no from now on, and yes again. */
    | { type: "refuse" }
    | { type: "agree" };
  event:
    | { type: "voted"; transaction: Transaction; vote: "yes" | "no" }
    | { type: "decided"; transaction: Transaction; value: Decision };
  record:
    | { type: "reserved"; upTo: number }
    /** Of a participant: it has voted yes. */
    | { type: "prepared"; transaction: Transaction }
    /** Of a participant. */
    | { type: "finished"; transaction: Transaction; decision: Decision }
    /** Of a coordinator, with those who have to hear of it. An abort it does not journal. */
    | { type: "committed"; transaction: Transaction; participants: NodeId[] }
    /** Of a coordinator: everybody knows, and it may forget. */
    | { type: "ended" }
    /** What all records so far come to. */
    | { type: "summary"; upTo: number; parts: Record<NodeId, Part>; committed: Committed | null };
};

export interface Committed {
  transaction: Transaction;
  /** They have not acknowledged. */
  missing: NodeId[];
}

type Coordinator =
  | { phase: "idle" }
  /** Phase 1: `missing` have not voted. */
  | { phase: "voting"; transaction: Transaction; missing: NodeId[] }
  /** Phase 2. */
  | ({ phase: "committed" } & Committed);

export type State = TwoPhaseCommit["state"];
export type Ctx = Context<TwoPhaseCommit>;

const MAX_NODES = 1_000;
const transaction = struct<Transaction>({ coordinator: natural, number: natural });
const decision = oneOf("commit", "abort");
const parts = perNode(struct<Part>({ transaction, status: oneOf("in doubt", "commit", "abort") }), MAX_NODES);
const nodes = list(natural, MAX_NODES);

export const shapes: {
  readonly message: Shapes<TwoPhaseCommit["message"]>;
  readonly command: Shapes<TwoPhaseCommit["command"]>;
  readonly record: Shapes<TwoPhaseCommit["record"]>;
} = {
  message: {
    voteRequest: { transaction },
    vote: { transaction, vote: oneOf("yes", "no") },
    decision: { transaction, decision },
    acknowledgement: { transaction },
    inquiry: { transaction },
  },
  command: { propose: { transactions: natural }, refuse: {}, agree: {} },
  record: {
    reserved: { upTo: natural },
    prepared: { transaction },
    finished: { transaction, decision },
    committed: { transaction, participants: nodes },
    ended: {},
    summary: { upTo: natural, parts, committed: nullable(struct<Committed>({ transaction, missing: nodes })) },
  },
};

export const isSame = (a: Transaction, b: Transaction): boolean =>
  a.coordinator === b.coordinator && a.number === b.number;

/** Of two transactions of one coordinator. */
export const isBefore = (a: Transaction, b: Transaction): boolean => a.number < b.number;

export const twoPhaseCommitOptions = optionTable("two-phase-commit", {
  votesMs: positive(500, "a coordinator that lacks votes after this time aborts"),
  acknowledgementsMs: positive(500, "the time after which it repeats a commit, until all nodes have acknowledged it"),
  decisionMs: positive(1_000, "the time after which a participant in doubt asks for the decision"),
  isCooperative: flag(false, "whether it asks all nodes, and not the coordinator alone (cooperative termination)"),
});

export type TwoPhaseCommitOptions = OptionsOf<typeof twoPhaseCommitOptions>;
