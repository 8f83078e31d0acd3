/**
 * Single-decree Paxos: a quorum promises, a quorum accepts, and a value that a quorum has accepted is decided.
 * Lamport, "The Part-Time Parliament", ACM TOCS 1998; terms as in "Paxos Made Simple", 2001.
 *
 * Assumes   crash-recovery nodes with a journal; for liveness, a quorum is alive, links are reliable, and back-off lets
 *           one proposer finish.
 * Safety    agreement: no two nodes decide differently. Integrity: a node decides at most once. Validity: the decided
 *           value was proposed.
 * Liveness  termination: a node that has proposed eventually decides. Randomized back-off ends duels with probability
 *           one; without randomization, no algorithm can guarantee that (Fischer, Lynch & Paterson 1985). Nodes that
 *           have not proposed are not covered: a node that misses even the last reminder learns the decision only when
 *           some node proposes again ("Paxos Made Simple", §2.3).
 * Cost      (N − 1)(N + 3) messages for an undisturbed decision: N − 1 each of prepare, promise and accept, and
 *           N(N − 1) accepted, since every acceptor sends to every learner. Two round trips until the proposer has
 *           decided. If acceptors answer only the proposer: 4(N − 1) messages, plus N − 1 decided messages from the
 *           proposer to the learners.
 */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { Context, NodeId, Property, Protocol } from "../../../core/protocol.ts";
import { list, natural, nullable, oneOf, type Shapes, struct, text } from "../../../core/shape.ts";
import { flag, type OptionsOf, option, optionTable, positive } from "../../options.ts";
import { decisionProperties } from "../parts/decisions.ts";
import { isQuorum, type Quorums, quorumsProblem, quorumsShape } from "../parts/quorum-systems.ts";

/** A proposal number. It is unique, because it contains the node's id, and the node's round only increases. */
export interface Ballot {
  /** The round. It increases with each of the node's ballots. */
  round: number;
  /** The proposer. Its id breaks ties between equal rounds. */
  node: NodeId;
}

/** A value that a proposer asks the acceptors to accept. */
export interface Proposal {
  /** The number of the proposal. */
  ballot: Ballot;
  /** The proposed value. */
  value: string;
}

/** Vocabulary of single-decree Paxos. */
export type Paxos = {
  /** Unless the options specify otherwise, every node is a proposer, an acceptor and a learner. */
  state: {
    proposer: Proposer;
    /** The highest round that this node knows of. */
    round: number;
    /** The acceptor ignores all ballots below this one. */
    promised: Ballot | null;
    /** The acceptor's latest accepted proposal. */
    accepted: Proposal | null;
    /** The learner's view. For each acceptor: the latest proposal that it is known to have accepted. */
    learnt: Record<NodeId, Proposal>;
    decided: string | null;
    /**
     * At a proposer that has decided: the learners that may not know the decision, and the number of reminders sent to
     * them.
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
    /** Sent to a learner, or in answer to a request that arrives after the decision. */
    | { type: "decided"; value: string }
    /** Sent by a learner that already knew the decision. */
    | { type: "learnt" };
  timer: "retry" | "learn";
  command: { type: "propose"; value: string };
  event: { type: "decided"; value: string };
  record:
    | { type: "promised"; ballot: Ballot }
    | { type: "accepted"; proposal: Proposal }
    | { type: "decided"; value: string };
};

/**
 * The state of the proposer. `value` is its own value. If an acceptor has already accepted a different value, the
 * proposer may have to propose that value instead.
 */
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
    "a proposer without a quorum retries with a higher ballot after a random time between this and twice this",
  ),
  minBackOffMs: positive(10, "the shortest random time that a proposer waits after a nack"),
  maxBackOffMs: positive(
    200,
    "the longest random time that a proposer waits after a nack; the wait separates dueling proposers",
  ),
  backsOff: flag(true, "whether a proposer waits after a nack; otherwise two proposers may preempt each other forever"),
  learnMs: positive(
    2_000,
    "after this time, an acceptor that has not learned the decision proposes its accepted value, and a proposer that has decided reminds the other nodes",
  ),
  proposers: option(nodes, null, "the nodes that propose; `null` means all nodes"),
  acceptors: option(nodes, null, "the nodes that accept; `null` means all nodes"),
  learners: option(nodes, null, "the nodes that learn; `null` means all nodes"),
  quorums: option<Quorums>(quorumsShape, { type: "majority" }, "the quorums of the acceptors"),
  acceptorsTell: option(
    oneOf("learners", "proposer"),
    "learners",
    "where acceptors send their votes: to every learner, or only to the proposer, which informs the learners (distinguished learner)",
  ),
});

/** Options for `paxos()`. */
export type PaxosOptions = OptionsOf<typeof paxosOptions>;

/** Checks the options. @throws UsageError if a role has no nodes or two quorums of the acceptors do not intersect */
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

// The nodes that propose, accept and learn, and the quorums of acceptors.

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

/** The maximum number of reminders to a silent learner. Each wait is twice as long as the previous one. */
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

/** Returns whether the acceptor has promised to ignore the ballot. */
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

/**
 * Creates single-decree Paxos. Its `init()` throws UsageError `bad-option` if a role has no nodes or unknown ones, and
 * `bad-quorum` if two quorums need not intersect.
 *
 * @throws UsageError `bad-option` if an option is unknown or out of range.
 */
export function paxos(given?: Partial<PaxosOptions>): Protocol<Paxos> {
  const options = paxosOptions.settle(given);
  const { patienceMs, minBackOffMs, maxBackOffMs, learnMs } = options;
  const isDistinguished = options.acceptorsTell === "proposer";

  const { has, isEnough, tell, otherLearners } = roles(options);

  /** Performs phase 1a. An acceptor first journals its own promise, so that it never reuses the ballot. */
  function prepare(state: State, value: string, ctx: Ctx): void {
    state.round += 1;
    const ballot = { round: state.round, node: ctx.self };
    state.proposer = { is: "preparing", value, ballot, promises: {} };
    ctx.setTimer("retry", [patienceMs, 2 * patienceMs]);
    promise(state, ballot, ctx);
    tell("acceptors", { type: "prepare", ballot }, ctx);
    notePromise(state, ctx.self, ballot, state.accepted, ctx);
  }

  /** Performs phase 1b. */
  function promise(state: State, ballot: Ballot, ctx: Ctx): void {
    state.promised = ballot;
    state.round = Math.max(state.round, ballot.round);
    ctx.persist({ type: "promised", ballot });
  }

  /**
   * Performs phase 2a once a quorum has promised: proposes the value reported with the highest ballot, or else its own.
   */
  function notePromise(state: State, from: NodeId, ballot: Ballot, accepted: Proposal | null, ctx: Ctx): void {
    const { proposer } = state;
    if (proposer.is !== "preparing" || !isSame(proposer.ballot, ballot)) return; // Outdated, or no longer needed.
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

  /** Performs phase 2b: journals the proposal, then sends it to the learners or the proposer. */
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
    // Late: the acceptor has already accepted a higher ballot.
    if (known !== undefined && isBelow(proposal.ballot, known.ballot)) return;
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

  /** Stops reminding a learner that knows the decision, or that takes part in the protocol and will ask for it. */
  function heardFrom(state: State, from: NodeId, ctx: Ctx): void {
    if (state.silent.length === 0) return;
    state.silent = state.silent.filter((node) => node !== from);
    if (state.silent.length === 0) ctx.cancelTimer("learn");
  }

  /** Answers with the decision or a nack. @returns false if neither applies and the request can be granted */
  function decline(state: State, from: NodeId, ballot: Ballot, ctx: Ctx): boolean {
    if (state.decided !== null) ctx.send(from, { type: "decided", value: state.decided });
    else if (isStale(state, ballot)) ctx.send(from, { type: "nack", ballot, promised: state.promised as Ballot });
    else return false;
    return true;
  }

  /** Requests a decision that this acceptor has not learned, or reminds learners that have not confirmed it. */
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
        if (!isSame(proposer.ballot, ballot)) return; // This answers an earlier attempt.
        if (!options.backsOff) return prepare(state, proposer.value, ctx);
        state.proposer = { is: "backing off", value: proposer.value };
        ctx.setTimer("retry", [minBackOffMs, maxBackOffMs]);
      },
      decided(state, from, { value }, ctx) {
        if (state.decided === null) return decide(state, value, ctx);
        ctx.send(from, { type: "learnt" }); // This learner already knew the decision.
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
