/** What coordinators and participants of two-phase commit remember, say and journal. */
import { entriesIn } from "../../../core/per-node.ts";
import type { Context, EventOf, NodeId, Property, Protocol, World } from "../../../core/protocol.ts";
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

interface Committed {
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

/** What a node has said of the last few transactions, by their names. */
type Said = Readonly<Record<string, { readonly vote: "yes" | "no" | null; readonly decisions: readonly Decision[] }>>;

/** A participant that is in doubt about more than so many has long heard of newer ones, and knows that it was an abort. */
const REMEMBERED = 8;

const nameOf = ({ coordinator, number }: Transaction): string => `${coordinator}.${number}`;

function said(before: Said, event: EventOf<TwoPhaseCommit>): Said {
  if (event.type !== "voted" && event.type !== "decided") return before; // Of a system that says more.
  const name = nameOf(event.transaction);
  const { vote, decisions } = before[name] ?? { vote: null, decisions: [] };
  const now =
    event.type === "voted" ? { vote: event.vote, decisions } : { vote, decisions: [...decisions, event.value] };
  return Object.fromEntries(Object.entries({ ...before, [name]: now }).slice(-REMEMBERED));
}

const history = { empty: {} as Said, after: said };

/** By transaction, all decisions that were taken about it. */
function decisionsIn({ nodes, history }: World<State>): Map<string, Decision[]> {
  const found = new Map<string, Decision[]>();
  for (const node of nodes)
    for (const [name, { decisions }] of Object.entries(history<Said>(node)))
      found.set(name, [...(found.get(name) ?? []), ...decisions]);
  return found;
}

/** Or so long ago that it is forgotten. */
function hasVotedYes(said: Said, name: string): boolean {
  const isForgotten = said[name] === undefined && Object.keys(said).length === REMEMBERED;
  return isForgotten || said[name]?.vote === "yes";
}

/** By coordinator, the earliest transaction that the node voted for and has not decided, in any of its lives. */
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

/** As a participant: a coordinator that crashes before it has all votes forgets its transaction. */
const undecidedOf = ({ history }: World<State>, node: NodeId): [coordinator: NodeId, number: number][] =>
  entriesIn(history<Undecided>(node)).filter(([coordinator]) => coordinator !== node);

/** It has asked for votes, or has voted yes, and does not know what comes of it. */
const isWaiting = ({ coordinator, parts }: State): boolean =>
  coordinator.phase === "voting" || Object.values(parts).some(({ status }) => status === "in doubt");

export const atomicity: Property<TwoPhaseCommit> = {
  name: "atomicity",
  claim: "no two nodes decide differently about a transaction, crashed ones included",
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
  claim: "a participant that voted yes on a transaction finally decides that transaction",
  when: "leadsTo",
  history: votes,
  given: (world, node) => undecidedOf(world, node).length > 0,
  holds: (world, node) => undecidedOf(world, node).length === 0,
};

const properties: readonly Property<TwoPhaseCommit>[] = [
  atomicity,
  {
    name: "integrity",
    claim: "a node decides once about a transaction",
    when: "always",
    history,
    holds: ({ nodes, history }) =>
      nodes.every((node) => Object.values(history<Said>(node)).every(({ decisions }) => decisions.length <= 1)),
  },
  unanimity,
  memory,
  {
    name: "termination",
    claim: "a node that takes part in a transaction finally knows what was decided",
    when: "leadsTo",
    given: ({ state }, node) => isWaiting(state(node)),
    holds: ({ state }, node) => !isWaiting(state(node)),
  },
  decisionProperty,
];

export const declarations: Pick<Protocol<TwoPhaseCommit>, "source" | "assumes" | "properties" | "costs" | "view"> = {
  source: "Gray 1978; Mohan & Lindsay, PODC 1983",
  assumes: ["crash-recovery nodes with a journal", "for liveness: crashed nodes come back, reliable links"],
  properties,
  costs: [
    { when: "a commit, with its acknowledgements", messages: (nodes) => 4 * (nodes - 1) },
    { when: "a commit, until everybody knows", messages: (nodes) => 3 * (nodes - 1) },
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
