/** What two-phase commit promises: of all nodes, those that have crashed since among them. */
import { entriesIn } from "../../../core/per-node.ts";
import type { EventOf, NodeId, Property, Protocol, World } from "../../../core/protocol.ts";
import type { Decision, State, Transaction, TwoPhaseCommit } from "./vocabulary.ts";

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

const decision: Property<TwoPhaseCommit> = {
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
  decision,
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
