/** Types, shapes and properties of two-phase commit. */
import { entriesIn } from "../../../core/per-node.ts";
import type { Context, EventOf, NodeId, Property, Protocol, World } from "../../../core/protocol.ts";
import { list, natural, nullable, oneOf, perNode, type Shapes, struct } from "../../../core/shape.ts";
import { flag, type OptionsOf, optionTable, positive } from "../../options.ts";

/**
 * Identifies a transaction. A coordinator's numbers only grow, even over crashes, so no two of its transactions share a
 * name.
 */
export interface Transaction {
  coordinator: NodeId;
  number: number;
}

export type Decision = "commit" | "abort";

/** The last transaction of a coordinator that involved this node. */
export interface Part {
  transaction: Transaction;
  /** `in doubt`: the node has voted yes and may no longer decide on its own. */
  status: "in doubt" | Decision;
}

export type TwoPhaseCommit = {
  /** Every node may coordinate its own transactions, and takes part in all others. */
  state: {
    /** The number of the last transaction that it began. */
    number: number;
    /** Numbers up to this one are journalled as used. */
    reserved: number;
    /** The number of transactions still to begin. */
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
    /** From a node in doubt: requests the decision. */
    | { type: "inquiry"; transaction: Transaction };
  timer: "votes" | "acknowledgements" | "decision";
  command: /** Begins this many transactions, one after the other. */
    | { type: "propose"; transactions: number }
    /** `refuse`: vote no from now on. `agree`: vote yes again. */
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
    /** At a coordinator, with the participants that must learn the decision. An abort is not journalled. */
    | { type: "committed"; transaction: Transaction; participants: NodeId[] }
    /** At a coordinator: all participants know the decision, and it may forget the transaction. */
    | { type: "ended" }
    /** Replaces all records so far. */
    | { type: "summary"; upTo: number; parts: Record<NodeId, Part>; committed: Committed | null };
};

interface Committed {
  transaction: Transaction;
  /** The participants that have not acknowledged. */
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

/** Both transactions must have the same coordinator. */
export const isBefore = (a: Transaction, b: Transaction): boolean => a.number < b.number;

export const twoPhaseCommitOptions = optionTable("two-phase-commit", {
  votesMs: positive(500, "a coordinator aborts if it lacks votes after this time"),
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

export type TwoPhaseCommitOptions = OptionsOf<typeof twoPhaseCommitOptions>;

/** A node's votes and decisions on its most recent transactions, by name. */
type Said = Readonly<Record<string, { readonly vote: "yes" | "no" | null; readonly decisions: readonly Decision[] }>>;

/**
 * A participant in doubt about a transaction older than this has received newer ones, so it knows that the old one was
 * aborted.
 */
const REMEMBERED = 8;

const nameOf = ({ coordinator, number }: Transaction): string => `${coordinator}.${number}`;

function said(before: Said, event: EventOf<TwoPhaseCommit>): Said {
  if (event.type !== "voted" && event.type !== "decided") return before; // An event of a larger system.
  const name = nameOf(event.transaction);
  const { vote, decisions } = before[name] ?? { vote: null, decisions: [] };
  const now =
    event.type === "voted" ? { vote: event.vote, decisions } : { vote, decisions: [...decisions, event.value] };
  return Object.fromEntries(Object.entries({ ...before, [name]: now }).slice(-REMEMBERED));
}

const history = { empty: {} as Said, after: said };

/** All decisions by transaction. */
function decisionsIn({ nodes, history }: World<State>): Map<string, Decision[]> {
  const found = new Map<string, Decision[]>();
  for (const node of nodes)
    for (const [name, { decisions }] of Object.entries(history<Said>(node)))
      found.set(name, [...(found.get(name) ?? []), ...decisions]);
  return found;
}

/** A vote so old that it is no longer remembered counts as a yes. */
function hasVotedYes(said: Said, name: string): boolean {
  const isForgotten = said[name] === undefined && Object.keys(said).length === REMEMBERED;
  return isForgotten || said[name]?.vote === "yes";
}

/**
 * For each coordinator, the earliest transaction that the node voted yes on and has not decided, including before
 * crashes.
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

/** Covers participants only: a coordinator that crashes before it has all votes forgets its transaction. */
const undecidedOf = ({ history }: World<State>, node: NodeId): [coordinator: NodeId, number: number][] =>
  entriesIn(history<Undecided>(node)).filter(([coordinator]) => coordinator !== node);

/** Whether the node has requested votes, or has voted yes, and does not know the decision. */
const isWaiting = ({ coordinator, parts }: State): boolean =>
  coordinator.phase === "voting" || Object.values(parts).some(({ status }) => status === "in doubt");

export const atomicity: Property<TwoPhaseCommit> = {
  name: "atomicity",
  claim: "no two nodes, including crashed ones, decide differently about a transaction",
  when: "always",
  history,
  holds: (world) => [...decisionsIn(world).values()].every((decisions) => new Set(decisions).size <= 1),
};

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
  claim: "a participant remembers that it voted yes until it decides, after a restart as well",
  when: "always",
  history: votes,
  holds: (world) =>
    world.alive.every((node) =>
      undecidedOf(world, node).every(
        // The part is also there if a crash came between its record and the event.
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

export const declarations: Pick<Protocol<TwoPhaseCommit>, "source" | "assumes" | "properties" | "costs" | "view"> = {
  source: "Gray 1978; Mohan & Lindsay, PODC 1983",
  assumes: ["crash-recovery nodes with a journal", "for liveness: crashed nodes recover, reliable links"],
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
