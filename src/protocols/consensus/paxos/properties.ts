/** What Paxos promises: of all nodes, those that have crashed since among them. */
import type { EventOf, Property, Protocol } from "../../../core/protocol.ts";
import type { Paxos } from "./vocabulary.ts";

/** What a node has decided, in all its lives; more than two times need not be told apart. */
type Decisions = readonly string[];

const history = {
  empty: [] as Decisions,
  after: (before: Decisions, { value }: EventOf<Paxos>): Decisions => [...before, value].slice(0, 2),
};

const properties: readonly Property<Paxos>[] = [
  {
    name: "agreement",
    claim: "no two nodes decide differently, crashed ones included",
    when: "always",
    history,
    holds: ({ nodes, history }) => new Set(nodes.flatMap((node) => history<Decisions>(node))).size <= 1,
  },
  {
    name: "integrity",
    claim: "a node decides once, over crashes too",
    when: "always",
    history,
    holds: ({ nodes, history }) => nodes.every((node) => history<Decisions>(node).length <= 1),
  },
  {
    name: "termination",
    claim: "a node that has proposed has decided in the end",
    when: "leadsTo",
    given: ({ state }, node) => state(node).proposer.is !== "idle",
    holds: ({ state }, node) => state(node).proposer.is === "idle",
  },
];

export const declarations: Pick<Protocol<Paxos>, "source" | "assumes" | "properties" | "view"> = {
  source: "Lamport, ACM TOCS 1998; Paxos Made Simple, 2001",
  assumes: ["crash-recovery nodes with a journal", "for liveness: a quorum alive, reliable links"],
  properties,
  view: ({ proposer, decided, round }) => ({
    role: decided === null ? (proposer.is === "idle" ? "acceptor" : proposer.is) : "decided",
    // Its own ballot's round, which others may have passed.
    term: "ballot" in proposer ? proposer.ballot.round : round,
  }),
};
