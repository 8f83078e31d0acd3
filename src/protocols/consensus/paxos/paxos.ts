/**
 * Single-decree Paxos: a quorum promises, a quorum accepts, and a value that a quorum has accepted is decided.
 * Lamport, "The Part-Time Parliament", ACM TOCS 1998; terms of "Paxos Made Simple", 2001.
 *
 * Assumes   crash-recovery nodes with a journal; for liveness, a quorum alive, reliable links and luck in back-off.
 * Safety    agreement: no two nodes decide differently. Integrity: a node decides once. Validity: the decided value was
 *           proposed.
 * Liveness  termination: a node that has proposed eventually decides. Randomized back-off ends duels with probability
 *           one; without it no algorithm can promise that (Fischer, Lynch & Paterson 1985). Other nodes are not
 *           covered: a node that was cut off for longer than it is reminded learns the decision when some node proposes
 *           again ("Paxos Made Simple", §2.3).
 * Cost      (N − 1)(N + 3) messages for an undisturbed decision: N − 1 prepare, promise and accept each, and N(N − 1)
 *           accepted, since every acceptor sends to every learner. 2 round trips until the proposer has decided. If
 *           acceptors answer the proposer only: 4(N − 1), and N − 1 decided from the proposer to the learners.
 */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { Context, NodeId, Property, Protocol } from "../../../core/protocol.ts";
import { list, natural, nullable, oneOf, type Shapes, struct, text } from "../../../core/shape.ts";
import { flag, type OptionsOf, option, optionTable, positive } from "../../options.ts";
import { decisionProperties } from "../parts/decisions.ts";
import { isQuorum, type Quorums, quorumsProblem, quorumsShape } from "../parts/quorum-systems.ts";

/** The number of a proposal. It is unique, since it contains the node and the node's round only grows. */
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
    /** The acceptor's latest accepted proposal. */
    accepted: Proposal | null;
    /** The learner's view: the latest proposal that each acceptor is known to have accepted. */
    learnt: Record<NodeId, Proposal>;
    decided: string | null;
    /**
     * At a proposer that has decided: the learners that may not know the decision, and how often they were reminded.
     */
    silent: NodeId[];
    reminders: number;
  };
  message:
    | { type: "prepare"; ballot: Ballot }
    | { type: "promise"; ballot: Ballot; accepted: Proposal | null }
    | { type: "accept"; proposal: Proposal }
    | { type: "accepted"; proposal: Proposal }
    | { type: "nack"; ballot: Ballot; promised: Ballot }
    /** To a learner, or in answer to a request when the decision is known. */
    | { type: "decided"; value: string }
    /** From a learner that already knew the decision. */
    | { type: "learnt" };
  timer: "retry" | "learn";
  command: { type: "propose"; value: string };
  event: { type: "decided"; value: string };
  record:
    | { type: "promised"; ballot: Ballot }
    | { type: "accepted"; proposal: Proposal }
    | { type: "decided"; value: string };
};

/** `value` is the node's own. The node must propose another one if an acceptor has accepted it before. */
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
    "without a quorum, a proposer retries with a higher ballot after a random time between this and twice this",
  ),
  minBackOffMs: positive(10, "the shortest random wait of a proposer after a nack"),
  maxBackOffMs: positive(200, "the longest random wait of a proposer after a nack, which separates dueling proposers"),
  backsOff: flag(true, "whether a proposer waits after a nack; otherwise two proposers may preempt each other forever"),
  learnMs: positive(
    2_000,
    "an acceptor that has not learned the decision after this time proposes its accepted value; a proposer that has decided reminds the others after this time",
  ),
  proposers: option(nodes, null, "the nodes that propose; `null`: all"),
  acceptors: option(nodes, null, "the nodes that accept; `null`: all"),
  learners: option(nodes, null, "the nodes that learn; `null`: all"),
  quorums: option<Quorums>(quorumsShape, { type: "majority" }, "the quorums of the acceptors"),
  acceptorsTell: option(
    oneOf("learners", "proposer"),
    "learners",
    "where acceptors send their votes: to every learner, or only to the proposer, which informs the learners (distinguished learner)",
  ),
});

export type PaxosOptions = OptionsOf<typeof paxosOptions>;

/** Checks that every role has nodes and that any two quorums of the acceptors intersect. @throws UsageError if not */
function requireRoles(options: PaxosOptions, nodes: readonly NodeId[]): void {
  const members = nodes.toSorted((a, b) => a - b);
  for (const role of ["proposers", "acceptors", "learners"] as const) {
    const named = options[role];
    if (named === null) continue;
    const stray = named.find((node) => !members.includes(node));
    if (stray !== undefined || named.length === 0)
      throw new UsageError(
        "bad-option",
        unexpected(`paxos.${role}`, `one or more of the nodes ${members.join(", ")}`, named),
      );
  }
  const problem = quorumsProblem(options.quorums, options.acceptors ?? members);
  if (problem !== null) throw new UsageError("bad-quorum", `expected paxos.quorums to intersect: ${problem}`);
}

// Which nodes propose, accept and learn, and which sets of answers form a quorum.

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
    claim: "every node that proposes eventually decides",
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
    // The round of its own ballot, even if other nodes have moved to higher ones.
    term: "ballot" in proposer ? proposer.ballot.round : round,
  }),
};

/** How often a silent learner is reminded; each wait is twice as long as the one before. */
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

/** Whether the acceptor has promised to ignore the ballot. */
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

const undisturbed = { when: "one uncontended proposal", messages: (nodes: number) => (nodes - 1) * (nodes + 3) };
const tellingTheLearners = {
  when: "one uncontended proposal, learners notified",
  messages: (nodes: number) => 5 * (nodes - 1),
};

export function paxos(given?: Partial<PaxosOptions>): Protocol<Paxos> {
  const options = paxosOptions.settle(given);
  const { patienceMs, minBackOffMs, maxBackOffMs, learnMs } = options;
  const isDistinguished = options.acceptorsTell === "proposer";

  const { has, isEnough, tell, otherLearners } = roles(options);

  /** Phase 1a. An acceptor that proposes promises first: its journal prevents it from reusing the ballot. */
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

  /** Phase 2a: with a quorum of promises, proposes the value of the highest ballot in them, or else its own. */
  function notePromise(state: State, from: NodeId, ballot: Ballot, accepted: Proposal | null, ctx: Ctx): void {
    const { proposer } = state;
    if (proposer.is !== "preparing" || !isSame(proposer.ballot, ballot)) return; // Outdated or surplus.
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

  /** Phase 2b: journals the proposal, then sends it to the learners, or to the proposer. */
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
    if (known !== undefined && isBelow(proposal.ballot, known.ballot)) return; // Late: the acceptor has accepted a higher ballot.
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

  /** The learner knows the decision, or is working on it and will ask. */
  function heardFrom(state: State, from: NodeId, ctx: Ctx): void {
    if (state.silent.length === 0) return;
    state.silent = state.silent.filter((node) => node !== from);
    if (state.silent.length === 0) ctx.cancelTimer("learn");
  }

  /** Answers with the decision or a nack. @returns false if neither applies, so that the request may be granted */
  function decline(state: State, from: NodeId, ballot: Ballot, ctx: Ctx): boolean {
    if (state.decided !== null) ctx.send(from, { type: "decided", value: state.decided });
    else if (isStale(state, ballot)) ctx.send(from, { type: "nack", ballot, promised: state.promised as Ballot });
    else return false;
    return true;
  }

  /** Called when an acceptor has not learned the decision, or some learners have not confirmed it. */
  function askOrRemind(state: State, ctx: Ctx): void {
    if (state.decided === null) {
      if (state.accepted !== null && state.proposer.is === "idle" && has("proposers", ctx.self))
        prepare(state, state.accepted.value, ctx);
      return;
    }
    if (state.silent.length === 0) return; // All learners have answered.
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
        if (proposer.is === "idle" || proposer.is === "backing off") return; // Decided, or already refused.
        if (!isSame(proposer.ballot, ballot)) return; // An earlier attempt.
        if (!options.backsOff) return prepare(state, proposer.value, ctx);
        state.proposer = { is: "backing off", value: proposer.value };
        ctx.setTimer("retry", [minBackOffMs, maxBackOffMs]);
      },
      decided(state, from, { value }, ctx) {
        if (state.decided === null) return decide(state, value, ctx);
        ctx.send(from, { type: "learnt" }); // It already knew.
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
        if (state.decided !== null || state.proposer.is !== "idle") return; // Too late, or a proposal is pending.
        if (has("proposers", ctx.self)) prepare(state, value, ctx);
      },
    },
    replay,
    shapes,
    costs: [isDistinguished ? tellingTheLearners : undisturbed],
    ...declarations,
  };
}
