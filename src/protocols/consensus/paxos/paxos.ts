/**
 * Single-decree Paxos: a quorum promises, a quorum accepts, and what a quorum has accepted is decided.
 * Lamport, "The Part-Time Parliament", ACM TOCS 1998; words of "Paxos Made Simple", 2001.
 *
 * Assumes   crash-recovery nodes with a journal; for liveness, a quorum alive, reliable links and luck in back-off.
 * Safety    agreement: no two nodes decide differently. Integrity: a node decides once. Validity: what is decided was proposed.
 * Liveness  termination: in the end a node that has proposed has decided. Randomised back-off ends duels with probability one;
 *           without it nothing can promise that (Fischer, Lynch & Paterson 1985). Of others it is not promised: a node that was cut
 *           off for longer than it is reminded learns when somebody proposes again, itself or another ("Paxos Made Simple", §2.3).
 * Cost      (N − 1)(N + 3) messages for an undisturbed decision: N − 1 prepare, promise and accept each, and N(N − 1)
 *           accepted, since every acceptor tells every learner. 2 round trips until the proposer has decided. Where acceptors
 *           tell the proposer alone: 4(N − 1), and N − 1 decided by which it tells the learners.
 */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { Context, NodeId, Property, Protocol } from "../../../core/protocol.ts";
import { list, natural, nullable, oneOf, type Shapes, struct, text } from "../../../core/shape.ts";
import { flag, type OptionsOf, option, optionTable, positive } from "../../options.ts";
import { decisionProperties } from "../parts/decisions.ts";
import { isQuorum, type Quorums, quorumsProblem, quorumsShape } from "../parts/quorum-systems.ts";

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
  /** Unless the options say otherwise, every node is a proposer, an acceptor and a learner. */
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
    /** Of a proposer that has decided: learners that may not know it, and how often they were reminded. */
    silent: NodeId[];
    reminders: number;
  };
  message:
    | { type: "prepare"; ballot: Ballot }
    | { type: "promise"; ballot: Ballot; accepted: Proposal | null }
    | { type: "accept"; proposal: Proposal }
    | { type: "accepted"; proposal: Proposal }
    | { type: "nack"; ballot: Ballot; promised: Ballot }
    /** To a learner, or to a node that asks for what is decided already. */
    | { type: "decided"; value: string }
    /** Of a learner that is told what it knows. */
    | { type: "learnt" };
  timer: "retry" | "learn";
  command: { type: "propose"; value: string };
  event: { type: "decided"; value: string };
  record:
    | { type: "promised"; ballot: Ballot }
    | { type: "accepted"; proposal: Proposal }
    | { type: "decided"; value: string };
};

/** `value` is the node's own; what it may ask the acceptors to accept is another if one of them has accepted before. */
type Proposer =
  | { is: "idle" }
  | { is: "preparing"; value: string; ballot: Ballot; promises: Record<NodeId, Proposal | null> }
  | { is: "proposing"; value: string; ballot: Ballot }
  | { is: "backing off"; value: string };

type State = Paxos["state"];
type Ctx = Context<Paxos>;

const ballotShape = struct<Ballot>({ round: natural, node: natural });
const valueShape = text(65_536);
const proposalShape = struct<Proposal>({ ballot: ballotShape, value: valueShape });

const shapes: {
  readonly message: Shapes<Paxos["message"]>;
  readonly command: Shapes<Paxos["command"]>;
  readonly record: Shapes<Paxos["record"]>;
} = {
  message: {
    prepare: { ballot: ballotShape },
    promise: { ballot: ballotShape, accepted: nullable(proposalShape) },
    accept: { proposal: proposalShape },
    accepted: { proposal: proposalShape },
    nack: { ballot: ballotShape, promised: ballotShape },
    decided: { value: valueShape },
    learnt: {},
  },
  command: { propose: { value: valueShape } },
  record: {
    promised: { ballot: ballotShape },
    accepted: { proposal: proposalShape },
    decided: { value: valueShape },
  },
};

const isBelow = (a: Ballot, b: Ballot): boolean => a.round < b.round || (a.round === b.round && a.node < b.node);
const isSame = (a: Ballot, b: Ballot): boolean => a.round === b.round && a.node === b.node;

const nodes = nullable(list(natural, 1_000));

const paxosOptions = optionTable("paxos", {
  patienceMs: positive(
    1_000,
    "a proposer tries again with a higher ballot after this time without a quorum, up to twice as long",
  ),
  minBackOffMs: positive(10, "the least random wait of a proposer after a nack"),
  maxBackOffMs: positive(
    200,
    "the longest random wait of a proposer after a nack, so that duelling proposers miss each other",
  ),
  backsOff: flag(true, "whether it waits; otherwise two proposers may refuse each other forever"),
  learnMs: positive(
    2_000,
    "an acceptor proposes an accepted value itself if it has not learned the decision after this time; a proposer that has decided first reminds the others after it",
  ),
  proposers: option(nodes, null, "the nodes that propose; `null`: all"),
  acceptors: option(nodes, null, "the nodes that accept; `null`: all"),
  learners: option(nodes, null, "the nodes that learn; `null`: all"),
  quorums: option<Quorums>(quorumsShape, { type: "majority" }, "the quorums of the acceptors"),
  acceptorsTell: option(
    oneOf("learners", "proposer"),
    "learners",
    "where acceptors send their votes: to every learner, or to the proposer, which then informs the learners as the distinguished one",
  ),
});

export type PaxosOptions = OptionsOf<typeof paxosOptions>;

/** Before the first step: every role has its nodes, and any two quorums of the acceptors meet. @throws UsageError */
function requireRoles(options: PaxosOptions, nodes: readonly NodeId[]): void {
  const members = nodes.toSorted((a, b) => a - b);
  for (const role of ["proposers", "acceptors", "learners"] as const) {
    const named = options[role];
    if (named === null) continue;
    const stray = named.find((node) => !members.includes(node));
    if (stray !== undefined || named.length === 0)
      throw new UsageError("bad-option", unexpected(`paxos.${role}`, `some of the nodes ${members.join(", ")}`, named));
  }
  const problem = quorumsProblem(options.quorums, options.acceptors ?? members);
  if (problem !== null) throw new UsageError("bad-quorum", `expected paxos.quorums to meet: ${problem}`);
}

// Who proposes, accepts and learns, and whose answers are enough.

function roles(options: PaxosOptions) {
  const everybody = (ctx: Ctx): NodeId[] => [...ctx.peers, ctx.self].sort((a, b) => a - b);
  const has = (role: "proposers" | "acceptors" | "learners", node: NodeId): boolean =>
    options[role] === null || options[role].includes(node);
  const isEnough = (answered: readonly NodeId[], ctx: Ctx): boolean =>
    isQuorum(options.quorums, options.acceptors ?? everybody(ctx), answered);

  function tell(role: "acceptors" | "learners", message: Paxos["message"], ctx: Ctx): void {
    if (options[role] === null) return ctx.broadcast(message);
    for (const node of options[role]) if (node !== ctx.self) ctx.send(node, message);
  }

  const otherLearners = (ctx: Ctx): NodeId[] =>
    (options.learners ?? everybody(ctx)).filter((node) => node !== ctx.self);

  return { has, isEnough, tell, otherLearners };
}

const properties: readonly Property<Paxos>[] = [
  ...decisionProperties<Paxos>(),
  {
    name: "termination",
    claim: "a node that has proposed has decided in the end",
    when: "leadsTo",
    given: ({ state }, node) => state(node).proposer.is !== "idle",
    holds: ({ state }, node) => state(node).proposer.is === "idle",
  },
];

const declarations: Pick<Protocol<Paxos>, "source" | "assumes" | "properties" | "view"> = {
  source: "Lamport, ACM TOCS 1998; Paxos Made Simple, 2001",
  assumes: ["crash-recovery nodes with a journal", "for liveness: a quorum alive, reliable links"],
  properties,
  view: ({ proposer, decided, round }) => ({
    role: decided === null ? (proposer.is === "idle" ? "acceptor" : proposer.is) : "decided",
    // Its own ballot's round, which others may have passed.
    term: "ballot" in proposer ? proposer.ballot.round : round,
  }),
};

/** A learner that stays silent is reminded so often, each time after twice as long. */
const MAX_REMINDERS = 5;

const fresh = (): State => ({
  proposer: { is: "idle" },
  round: 0,
  promised: null,
  accepted: null,
  learnt: {},
  decided: null,
  silent: [],
  reminders: 0,
});

/** Of ballots that an acceptor has promised to ignore. */
const isStale = ({ promised }: State, ballot: Ballot): boolean => promised !== null && isBelow(ballot, promised);

const replay: Protocol<Paxos>["replay"] = {
  promised(state, { ballot }) {
    state.promised = ballot;
    state.round = ballot.round;
  },
  accepted(state, { proposal }) {
    state.promised = proposal.ballot;
    state.round = proposal.ballot.round;
    state.accepted = proposal;
  },
  decided(state, { value }) {
    state.decided = value;
  },
};

const undisturbed = { when: "one undisturbed proposal", messages: (nodes: number) => (nodes - 1) * (nodes + 3) };
const tellingTheLearners = {
  when: "one undisturbed proposal, learners told",
  messages: (nodes: number) => 5 * (nodes - 1),
};

export function paxos(given?: Partial<PaxosOptions>): Protocol<Paxos> {
  const options = paxosOptions.settle(given);
  const { patienceMs, minBackOffMs, maxBackOffMs, learnMs } = options;
  const isDistinguished = options.acceptorsTell === "proposer";

  const { has, isEnough, tell, otherLearners } = roles(options);

  /** Phase 1a. A proposer that is an acceptor promises first, so its journal keeps the ballot from being used again. */
  function prepare(state: State, value: string, ctx: Ctx): void {
    state.round += 1;
    const ballot = { round: state.round, node: ctx.self };
    state.proposer = { is: "preparing", value, ballot, promises: {} };
    ctx.setTimer("retry", [patienceMs, 2 * patienceMs]);
    promise(state, ballot, ctx);
    tell("acceptors", { type: "prepare", ballot }, ctx);
    notePromise(state, ctx.self, ballot, state.accepted, ctx);
  }

  /** Phase 1b. */
  function promise(state: State, ballot: Ballot, ctx: Ctx): void {
    state.promised = ballot;
    state.round = Math.max(state.round, ballot.round);
    ctx.persist({ type: "promised", ballot });
  }

  /** Phase 2a: with a quorum of promises, ask to accept the value of the highest ballot among them, or else one's own. */
  function notePromise(state: State, from: NodeId, ballot: Ballot, accepted: Proposal | null, ctx: Ctx): void {
    const { proposer } = state;
    if (proposer.is !== "preparing" || !isSame(proposer.ballot, ballot)) return; // Of an earlier attempt, or one too many.
    proposer.promises[from] = accepted;
    if (!isEnough(Object.keys(proposer.promises).map(Number), ctx)) return;
    const highest = Object.values(proposer.promises).reduce(
      (a, b) => (a === null || (b !== null && isBelow(a.ballot, b.ballot)) ? b : a),
      null,
    );
    state.proposer = { is: "proposing", value: proposer.value, ballot };
    const proposal = { ballot, value: highest?.value ?? proposer.value };
    tell("acceptors", { type: "accept", proposal }, ctx);
    if (has("acceptors", ctx.self) && !isStale(state, ballot)) accept(state, proposal, ctx);
  }

  /** Phase 2b: journal, then tell the learners, or the proposer. */
  function accept(state: State, proposal: Proposal, ctx: Ctx): void {
    state.promised = proposal.ballot;
    state.round = Math.max(state.round, proposal.ballot.round);
    state.accepted = proposal;
    ctx.persist({ type: "accepted", proposal });
    const proposer = proposal.ballot.node;
    if (!isDistinguished) tell("learners", { type: "accepted", proposal }, ctx);
    if (proposer !== ctx.self && (isDistinguished || !has("learners", proposer)))
      ctx.send(proposer, { type: "accepted", proposal });
    if (proposer !== ctx.self) ctx.setTimer("learn", [learnMs, 2 * learnMs]);
    if (proposer === ctx.self || !isDistinguished) learn(state, ctx.self, proposal, ctx);
  }

  function learn(state: State, from: NodeId, proposal: Proposal, ctx: Ctx): void {
    if (state.decided !== null) return heardFrom(state, from, ctx);
    const known = state.learnt[from];
    if (known !== undefined && isBelow(proposal.ballot, known.ballot)) return; // Late: that acceptor has moved on.
    state.learnt[from] = proposal;
    const equal = Object.entries(state.learnt).filter(([, { ballot }]) => isSame(ballot, proposal.ballot));
    const acceptors = equal.map(([node]) => Number(node));
    if (!isEnough(acceptors, ctx)) return;
    const isOwn = proposal.ballot.node === ctx.self;
    decide(state, proposal.value, ctx);
    if (!isOwn) return;
    if (isDistinguished) tell("learners", { type: "decided", value: proposal.value }, ctx);
    state.silent = otherLearners(ctx).filter((node) => !acceptors.includes(node));
    if (state.silent.length > 0) ctx.setTimer("learn", learnMs);
  }

  function decide(state: State, value: string, ctx: Ctx): void {
    state.decided = value;
    state.proposer = { is: "idle" };
    state.learnt = {};
    ctx.persist({ type: "decided", value });
    ctx.cancelTimer("retry");
    ctx.cancelTimer("learn");
    ctx.emit({ type: "decided", value });
  }

  /** It knows what is decided, or is at work on it and will ask. */
  function heardFrom(state: State, from: NodeId, ctx: Ctx): void {
    if (state.silent.length === 0) return;
    state.silent = state.silent.filter((node) => node !== from);
    if (state.silent.length === 0) ctx.cancelTimer("learn");
  }

  /** Answers a request that needs no promise or acceptance: with the decision, or with a nack. Whether it did. */
  function decline(state: State, from: NodeId, ballot: Ballot, ctx: Ctx): boolean {
    if (state.decided !== null) ctx.send(from, { type: "decided", value: state.decided });
    else if (isStale(state, ballot)) ctx.send(from, { type: "nack", ballot, promised: state.promised as Ballot });
    else return false;
    return true;
  }

  /** What was decided has not come to this acceptor, or not to those learners. */
  function askOrRemind(state: State, ctx: Ctx): void {
    if (state.decided === null) {
      if (state.accepted !== null && state.proposer.is === "idle" && has("proposers", ctx.self))
        prepare(state, state.accepted.value, ctx);
      return;
    }
    if (state.silent.length === 0) return; // All are heard from.
    for (const node of state.silent) ctx.send(node, { type: "decided", value: state.decided });
    state.reminders += 1;
    if (state.reminders < MAX_REMINDERS) ctx.setTimer("learn", learnMs * 2 ** state.reminders);
  }

  return {
    name: "paxos",
    init(self, peers) {
      requireRoles(options, [...peers, self]);
      return fresh();
    },
    start(state, ctx) {
      if (state.decided === null && state.accepted !== null) ctx.setTimer("learn", [learnMs, 2 * learnMs]);
    },
    receive: {
      prepare(state, from, { ballot }, ctx) {
        if (!has("acceptors", ctx.self) || decline(state, from, ballot, ctx)) return;
        promise(state, ballot, ctx);
        ctx.send(from, { type: "promise", ballot, accepted: state.accepted });
      },
      promise(state, from, { ballot, accepted }, ctx) {
        if (has("acceptors", from)) notePromise(state, from, ballot, accepted, ctx);
      },
      accept(state, from, { proposal }, ctx) {
        if (!has("acceptors", ctx.self) || decline(state, from, proposal.ballot, ctx)) return;
        accept(state, proposal, ctx);
      },
      accepted(state, from, { proposal }, ctx) {
        if (has("acceptors", from)) learn(state, from, proposal, ctx);
      },
      nack(state, _from, { ballot, promised }, ctx) {
        const { proposer } = state;
        state.round = Math.max(state.round, promised.round);
        if (proposer.is === "idle" || proposer.is === "backing off") return; // Decided, or refused by another already.
        if (!isSame(proposer.ballot, ballot)) return; // Of an earlier attempt.
        if (!options.backsOff) return prepare(state, proposer.value, ctx);
        state.proposer = { is: "backing off", value: proposer.value };
        ctx.setTimer("retry", [minBackOffMs, maxBackOffMs]);
      },
      decided(state, from, { value }, ctx) {
        if (state.decided === null) return decide(state, value, ctx);
        ctx.send(from, { type: "learnt" }); // It was told already.
      },
      learnt: (state, from, _message, ctx) => heardFrom(state, from, ctx),
    },
    timeout: {
      retry(state, ctx) {
        if (state.proposer.is !== "idle") prepare(state, state.proposer.value, ctx);
      },
      learn: askOrRemind,
    },
    command: {
      propose(state, { value }, ctx) {
        if (state.decided !== null || state.proposer.is !== "idle") return; // Too late, or its first proposal stands.
        if (has("proposers", ctx.self)) prepare(state, value, ctx);
      },
    },
    replay,
    shapes,
    costs: [isDistinguished ? tellingTheLearners : undisturbed],
    ...declarations,
  };
}
