/**
 * Single-decree Paxos: a majority promises, a majority accepts, and what a majority has accepted is decided.
 * Lamport, "The Part-Time Parliament", ACM TOCS 1998; words of "Paxos Made Simple", 2001.
 *
 * Assumes   crash-recovery nodes with a journal; for liveness, a majority alive, reliable links and luck in back-off.
 * Safety    agreement: no two nodes decide differently. Validity: what is decided was proposed.
 * Liveness  termination: in the end a node that has proposed has decided. Randomised back-off ends duels; nothing can promise
 *           it (Fischer, Lynch & Paterson 1985).
 * Cost      (N − 1)(N + 3) messages for an undisturbed decision: N − 1 prepare, promise and accept each, and N(N − 1)
 *           accepted, since every acceptor tells every learner. 2 round trips until the proposer has decided.
 */
import type { Context, NodeId, Protocol } from "../../core/protocol.ts";
import { majority } from "../../core/quorums.ts";
import { natural, nullable, real, struct, text } from "../../core/shape.ts";
import { requirePositive, settle } from "../options.ts";

/** The number of a proposal: unique, since the node is part of it and its round only grows. */
export interface Ballot {
  round: number;
  node: NodeId;
}

export interface Proposal {
  ballot: Ballot;
  value: string;
}

export type Paxos = {
  /** Every node is a proposer, an acceptor and a learner. */
  state: {
    proposer: Proposer;
    /** The highest round that this node knows of. */
    round: number;
    /** The acceptor ignores all ballots below this one. */
    promised: Ballot | null;
    /** What the acceptor has accepted last. */
    accepted: Proposal | null;
    /** The learner: what each acceptor has accepted last, as far as it knows. */
    learnt: Record<NodeId, Proposal>;
    decided: string | null;
  };
  message:
    | { type: "prepare"; ballot: Ballot }
    | { type: "promise"; ballot: Ballot; accepted: Proposal | null }
    | { type: "accept"; proposal: Proposal }
    | { type: "accepted"; proposal: Proposal }
    | { type: "nack"; ballot: Ballot; promised: Ballot };
  timer: "retry";
  command: { type: "propose"; value: string };
  event: { type: "decided"; value: string };
  record: { type: "promised"; ballot: Ballot } | { type: "accepted"; proposal: Proposal };
};

/** `value` is the node's own; what it may ask the acceptors to accept is another if one of them has accepted before. */
type Proposer =
  | { is: "idle" }
  | { is: "preparing"; value: string; ballot: Ballot; promises: Record<NodeId, Proposal | null> }
  | { is: "proposing"; value: string; ballot: Ballot }
  | { is: "backing off"; value: string };

export interface PaxosOptions {
  /** After so long without a majority a proposer tries again with a higher ballot. */
  patienceMs: number;
  /** After a nack it waits a random time between these two, so that duellists miss each other. */
  minBackOffMs: number;
  maxBackOffMs: number;
}

const defaults: PaxosOptions = { patienceMs: 1_000, minBackOffMs: 10, maxBackOffMs: 200 };

const optionShape = struct<PaxosOptions>({ patienceMs: real, minBackOffMs: real, maxBackOffMs: real });

const ballotShape = struct<Ballot>({ round: natural, node: natural });
const valueShape = text(65_536);
const proposalShape = struct<Proposal>({ ballot: ballotShape, value: valueShape });

type State = Paxos["state"];
type Ctx = Context<Paxos>;

const isBelow = (a: Ballot, b: Ballot): boolean => a.round < b.round || (a.round === b.round && a.node < b.node);
const isSame = (a: Ballot, b: Ballot): boolean => a.round === b.round && a.node === b.node;
/** Of ballots that an acceptor has promised to ignore. */
const isStale = ({ promised }: State, ballot: Ballot): boolean => promised !== null && isBelow(ballot, promised);

export function paxos(given?: Partial<PaxosOptions>): Protocol<Paxos> {
  const options = settle(defaults, optionShape, given, "paxos");
  for (const [name, value] of Object.entries(options)) requirePositive(`paxos.${name}`, value);
  const { patienceMs, minBackOffMs, maxBackOffMs } = options;
  const quorum = (ctx: Ctx): number => majority(ctx.peers.length + 1);

  /** Phase 1a. The node is an acceptor too: it promises first, so its journal keeps the ballot from being used again. */
  function prepare(state: State, value: string, ctx: Ctx): void {
    state.round += 1;
    const ballot = { round: state.round, node: ctx.self };
    state.proposer = { is: "preparing", value, ballot, promises: {} };
    ctx.setTimer("retry", [patienceMs, 2 * patienceMs]);
    promise(state, ballot, ctx);
    ctx.broadcast({ type: "prepare", ballot });
    notePromise(state, ctx.self, ballot, state.accepted, ctx);
  }

  /** Phase 1b. */
  function promise(state: State, ballot: Ballot, ctx: Ctx): void {
    state.promised = ballot;
    state.round = Math.max(state.round, ballot.round);
    ctx.persist({ type: "promised", ballot });
  }

  /** Phase 2a: with a majority of promises, ask to accept the value of the highest ballot among them, or else one's own. */
  function notePromise(state: State, from: NodeId, ballot: Ballot, accepted: Proposal | null, ctx: Ctx): void {
    const { proposer } = state;
    if (proposer.is !== "preparing" || !isSame(proposer.ballot, ballot)) return; // Of an earlier attempt, or one too many.
    proposer.promises[from] = accepted;
    const promises = Object.values(proposer.promises);
    if (promises.length < quorum(ctx)) return;
    const highest = promises.reduce(
      (a, b) => (a === null || (b !== null && isBelow(a.ballot, b.ballot)) ? b : a),
      null,
    );
    state.proposer = { is: "proposing", value: proposer.value, ballot };
    const proposal = { ballot, value: highest?.value ?? proposer.value };
    ctx.broadcast({ type: "accept", proposal });
    if (!isStale(state, ballot)) accept(state, proposal, ctx);
  }

  /** Phase 2b: journal, then tell every learner. */
  function accept(state: State, proposal: Proposal, ctx: Ctx): void {
    state.promised = proposal.ballot;
    state.round = Math.max(state.round, proposal.ballot.round);
    state.accepted = proposal;
    ctx.persist({ type: "accepted", proposal });
    ctx.broadcast({ type: "accepted", proposal });
    learn(state, ctx.self, proposal, ctx);
  }

  function learn(state: State, from: NodeId, proposal: Proposal, ctx: Ctx): void {
    const known = state.learnt[from];
    if (known !== undefined && isBelow(proposal.ballot, known.ballot)) return; // Late: that acceptor has moved on.
    state.learnt[from] = proposal;
    const equal = Object.values(state.learnt).filter(({ ballot }) => isSame(ballot, proposal.ballot));
    if (equal.length < quorum(ctx) || state.decided !== null) return;
    state.decided = proposal.value;
    state.proposer = { is: "idle" };
    ctx.cancelTimer("retry");
    ctx.emit({ type: "decided", value: proposal.value });
  }

  return {
    name: "paxos",
    init: () => ({ proposer: { is: "idle" }, round: 0, promised: null, accepted: null, learnt: {}, decided: null }),
    receive: {
      prepare(state, from, { ballot }, ctx) {
        if (isStale(state, ballot)) return ctx.send(from, { type: "nack", ballot, promised: state.promised as Ballot });
        promise(state, ballot, ctx);
        ctx.send(from, { type: "promise", ballot, accepted: state.accepted });
      },
      promise: (state, from, { ballot, accepted }, ctx) => notePromise(state, from, ballot, accepted, ctx),
      accept(state, from, { proposal }, ctx) {
        const { ballot } = proposal;
        if (isStale(state, ballot)) return ctx.send(from, { type: "nack", ballot, promised: state.promised as Ballot });
        accept(state, proposal, ctx);
      },
      accepted: (state, from, { proposal }, ctx) => learn(state, from, proposal, ctx),
      nack(state, _from, { ballot, promised }, ctx) {
        const { proposer } = state;
        state.round = Math.max(state.round, promised.round);
        if (proposer.is === "idle" || proposer.is === "backing off") return; // Decided, or refused by another already.
        if (!isSame(proposer.ballot, ballot)) return; // Of an earlier attempt.
        state.proposer = { is: "backing off", value: proposer.value };
        ctx.setTimer("retry", [minBackOffMs, maxBackOffMs]);
      },
    },
    timeout: {
      retry(state, ctx) {
        if (state.proposer.is !== "idle") prepare(state, state.proposer.value, ctx);
      },
    },
    command: {
      propose(state, { value }, ctx) {
        if (state.decided !== null || state.proposer.is !== "idle") return; // Too late, or its first proposal stands.
        prepare(state, value, ctx);
      },
    },
    replay: {
      promised(state, { ballot }) {
        state.promised = ballot;
        state.round = ballot.round;
      },
      accepted(state, { proposal }) {
        state.promised = proposal.ballot;
        state.round = proposal.ballot.round;
        state.accepted = proposal;
      },
    },
    ...declarations,
  };
}

const declarations: Pick<Protocol<Paxos>, "shapes" | "source" | "assumes" | "properties" | "costs" | "view"> = {
  shapes: {
    message: {
      prepare: { ballot: ballotShape },
      promise: { ballot: ballotShape, accepted: nullable(proposalShape) },
      accept: { proposal: proposalShape },
      accepted: { proposal: proposalShape },
      nack: { ballot: ballotShape, promised: ballotShape },
    },
    command: { propose: { value: valueShape } },
    record: { promised: { ballot: ballotShape }, accepted: { proposal: proposalShape } },
  },
  source: "Lamport, ACM TOCS 1998; Paxos Made Simple, 2001",
  assumes: ["crash-recovery nodes with a journal", "for liveness: a majority alive, reliable links"],
  properties: [
    {
      name: "agreement",
      claim: "no two nodes decide differently",
      when: "always",
      holds: ({ alive, state }) =>
        new Set(alive.map((node) => state(node).decided).filter((value) => value !== null)).size <= 1,
    },
    {
      name: "termination",
      claim: "a node that has proposed has decided in the end",
      when: "leadsTo",
      given: ({ state }, node) => state(node).proposer.is !== "idle",
      holds: ({ state }, node) => state(node).proposer.is === "idle",
    },
  ],
  costs: [{ when: "one undisturbed proposal", messages: (nodes) => (nodes - 1) * (nodes + 3) }],
  view: ({ proposer, decided, round }) => ({
    role: decided === null ? (proposer.is === "idle" ? "acceptor" : proposer.is) : "decided",
    term: round,
  }),
};
