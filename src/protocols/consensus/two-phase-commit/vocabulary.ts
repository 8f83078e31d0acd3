/** The types, shapes and properties of two-phase commit. */
import { entriesIn } from "../../../core/per-node.ts";
import type { Context, EventOf, NodeId, Property, Protocol, World } from "../../../core/protocol.ts";
import { list, natural, nullable, oneOf, perNode, type Shapes, struct } from "../../../core/shape.ts";
import { flag, type OptionsOf, optionTable, positive } from "../../options.ts";

/**
 * The name of a transaction. A coordinator's numbers only increase, even across crashes, so no two of its transactions
 * have the same name.
 */
export interface Transaction {
  /** The node that began the transaction. */
  coordinator: NodeId;
  /** The transaction number, unique per coordinator. */
  number: number;
}

/** The outcome of a transaction. */
export type Decision = "commit" | "abort";

/** A coordinator's last transaction that involved this node. */
export interface Part {
  transaction: Transaction;
  /** The status. `in doubt`: the node has voted yes and may no longer decide on its own. */
  status: "in doubt" | Decision;
}

/** Vocabulary of two-phase commit. */
export type TwoPhaseCommit = {
  /** Every node may coordinate its own transactions, and participates in all others. */
  state: {
    /** The number of the last transaction that this node began. */
    number: number;
    /** The highest transaction number that is reserved in the journal. */
    reserved: number;
    /** The number of transactions that have yet to begin. */
    wanted: number;
    coordinator: Coordinator;
    /** Whether the node votes yes. */
    isWilling: boolean;
    /** For each coordinator: the last transaction that involved this node. */
    parts: Record<NodeId, Part>;
  };
  message:
    | { type: "voteRequest"; transaction: Transaction }
    | { type: "vote"; transaction: Transaction; vote: "yes" | "no" }
    | { type: "decision"; transaction: Transaction; decision: Decision }
    | { type: "acknowledgement"; transaction: Transaction }
    /** Requests the decision. Sent by a node in doubt. */
    | { type: "inquiry"; transaction: Transaction };
  timer: "votes" | "acknowledgements" | "decision";
  command: /** Begins this many transactions, one after another. */
    | { type: "propose"; transactions: number }
    /** `refuse`: votes no from now on. `agree`: votes yes again. */
    | { type: "refuse" }
    | { type: "agree" };
  event:
    | { type: "voted"; transaction: Transaction; vote: "yes" | "no" }
    | { type: "decided"; transaction: Transaction; value: Decision };
  record:
    | { type: "reserved"; upTo: number }
    /** At a participant: it has voted yes. */
    | { type: "prepared"; transaction: Transaction }
    /** At a participant: it has decided. */
    | { type: "finished"; transaction: Transaction; decision: Decision }
    /**
     * At a coordinator: it has committed. Includes the participants that must learn the decision. An abort is not
     * journaled.
     */
    | { type: "committed"; transaction: Transaction; participants: NodeId[] }
    /** At a coordinator: all participants know the decision, so it may forget the transaction. */
    | { type: "ended" }
    /** Replaces all earlier records. */
    | { type: "summary"; upTo: number; parts: Record<NodeId, Part>; committed: Committed | null };
};

interface Committed {
  transaction: Transaction;
  /** The participants that have not acknowledged the decision yet. */
  missing: NodeId[];
}

type Coordinator =
  | { phase: "idle" }
  /** Phase 1. The nodes in `missing` have not voted yet. */
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

/** Returns whether two transactions are the same. */
export const isSame = (a: Transaction, b: Transaction): boolean =>
  a.coordinator === b.coordinator && a.number === b.number;

/** Returns whether `a` is an earlier transaction than `b`. Both must have the same coordinator. */
export const isBefore = (a: Transaction, b: Transaction): boolean => a.number < b.number;

/** The option table for `twoPhaseCommit()`. */
export const twoPhaseCommitOptions = optionTable("two-phase-commit", {
  votesMs: positive(500, "a coordinator aborts if votes are still missing after this time"),
  acknowledgementsMs: positive(
    500,
    "a coordinator resends a commit at this interval until all nodes have acknowledged it",
  ),
  decisionMs: positive(1_000, "a participant in doubt requests the decision at this interval"),
  isCooperative: flag(
    false,
    "whether a participant in doubt asks all nodes instead of only the coordinator (cooperative termination)",
  ),
});

/** Options for `twoPhaseCommit()`. */
export type TwoPhaseCommitOptions = OptionsOf<typeof twoPhaseCommitOptions>;

/** A node's votes and decisions on its most recent transactions, keyed by transaction name. */
type Said = Readonly<Record<string, { readonly vote: "yes" | "no" | null; readonly decisions: readonly Decision[] }>>;

/**
 * The number of transactions kept in a history. A participant in doubt about an older transaction has since received
 * newer ones, so it knows that the older one was aborted.
 */
const REMEMBERED = 8;

const nameOf = ({ coordinator, number }: Transaction): string => `${coordinator}.${number}`;

function said(before: Said, event: EventOf<TwoPhaseCommit>): Said {
  if (event.type !== "voted" && event.type !== "decided") return before; // An event from a larger system.
  const name = nameOf(event.transaction);
  const { vote, decisions } = before[name] ?? { vote: null, decisions: [] };
  const now =
    event.type === "voted" ? { vote: event.vote, decisions } : { vote, decisions: [...decisions, event.value] };
  return Object.fromEntries(Object.entries({ ...before, [name]: now }).slice(-REMEMBERED));
}

const history = { empty: {} as Said, after: said };

/** Returns all decisions, keyed by transaction. */
function decisionsIn({ nodes, history }: World<State>): Map<string, Decision[]> {
  const found = new Map<string, Decision[]>();
  for (const node of nodes)
    for (const [name, { decisions }] of Object.entries(history<Said>(node)))
      found.set(name, [...(found.get(name) ?? []), ...decisions]);
  return found;
}

/** Returns whether the node has voted yes. A vote that is too old to be in the history counts as a yes. */
function hasVotedYes(said: Said, name: string): boolean {
  const isForgotten = said[name] === undefined && Object.keys(said).length === REMEMBERED;
  return isForgotten || said[name]?.vote === "yes";
}

/**
 * For each coordinator: the earliest transaction that the node has voted yes on but not decided. Includes votes from
 * before crashes.
 */
type Undecided = Readonly<Record<NodeId, number>>;

function undecided(before: Undecided, event: EventOf<TwoPhaseCommit>): Undecided {
  if (event.type !== "voted" && event.type !== "decided") return before;
  const { coordinator, number } = event.transaction;
  if (event.type === "voted") return event.vote === "no" ? before : { [coordinator]: number, ...before };
  if (before[coordinator] !== number) return before;
  const { [coordinator]: _decided, ...others } = before;
  return others;
}

const votes = { empty: {} as Undecided, after: undecided };

/**
 * Returns the undecided transactions that the node participates in without coordinating them. A coordinator that
 * crashes before it has received all votes forgets its transaction.
 */
const undecidedOf = ({ history }: World<State>, node: NodeId): [coordinator: NodeId, number: number][] =>
  entriesIn(history<Undecided>(node)).filter(([coordinator]) => coordinator !== node);

/** Returns whether the node has requested votes or voted yes, and does not know the decision yet. */
const isWaiting = ({ coordinator, parts }: State): boolean =>
  coordinator.phase === "voting" || Object.values(parts).some(({ status }) => status === "in doubt");

/** The property that no two nodes decide differently. */
export const atomicity: Property<TwoPhaseCommit> = {
  name: "atomicity",
  claim: "no two nodes, including crashed ones, decide differently about a transaction",
  when: "always",
  history,
  holds: (world) => [...decisionsIn(world).values()].every((decisions) => new Set(decisions).size <= 1),
};

/** The property that a commit needs a yes vote from every node. */
export const unanimity: Property<TwoPhaseCommit> = {
  name: "unanimity",
  claim: "a transaction commits only if all nodes have voted yes",
  when: "always",
  history,
  holds: (world) =>
    [...decisionsIn(world)].every(
      ([name, decisions]) =>
        !decisions.includes("commit") || world.nodes.every((node) => hasVotedYes(world.history<Said>(node), name)),
    ),
};

const memory: Property<TwoPhaseCommit> = {
  name: "memory",
  claim: "a participant remembers that it voted yes until it decides, even across restarts",
  when: "always",
  history: votes,
  holds: (world) =>
    world.alive.every((node) =>
      undecidedOf(world, node).every(
        // The part also exists if the node crashed between writing the record and emitting the event.
        ([coordinator, number]) => (world.state(node).parts[coordinator]?.transaction.number ?? 0) >= number,
      ),
    ),
};

const decisionProperty: Property<TwoPhaseCommit> = {
  name: "decision",
  claim: "a participant that voted yes on a transaction eventually decides it",
  when: "leadsTo",
  history: votes,
  given: (world, node) => undecidedOf(world, node).length > 0,
  holds: (world, node) => undecidedOf(world, node).length === 0,
};

const properties: readonly Property<TwoPhaseCommit>[] = [
  atomicity,
  {
    name: "integrity",
    claim: "a node decides each transaction at most once",
    when: "always",
    history,
    holds: ({ nodes, history }) =>
      nodes.every((node) => Object.values(history<Said>(node)).every(({ decisions }) => decisions.length <= 1)),
  },
  unanimity,
  memory,
  {
    name: "termination",
    claim: "every participant in a transaction eventually learns the decision",
    when: "leadsTo",
    given: ({ state }, node) => isWaiting(state(node)),
    holds: ({ state }, node) => !isWaiting(state(node)),
  },
  decisionProperty,
];

/** The source, assumptions, properties and costs. */
export const declarations: Pick<Protocol<TwoPhaseCommit>, "source" | "assumes" | "properties" | "costs" | "view"> = {
  source: "Gray 1978; Mohan & Lindsay, PODC 1983",
  assumes: ["crash-recovery nodes with a journal", "for liveness: crashed nodes recover; reliable links"],
  properties,
  costs: [
    { when: "one commit, with its acknowledgements", messages: (nodes) => 4 * (nodes - 1) },
    { when: "one commit, until all nodes know", messages: (nodes) => 3 * (nodes - 1) },
  ],
  view: ({ coordinator, parts, number }) => ({
    role:
      coordinator.phase !== "idle"
        ? coordinator.phase
        : Object.values(parts).some(({ status }) => status === "in doubt")
          ? "in doubt"
          : "participant",
    term: number,
  }),
};
