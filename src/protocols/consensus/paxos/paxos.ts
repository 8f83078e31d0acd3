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
import type { NodeId, Protocol } from "../../../core/protocol.ts";
import { type PaxosOptions, paxosOptions, requireRoles } from "./options.ts";
import { declarations } from "./properties.ts";
import { roles } from "./roles.ts";
import { type Ballot, type Ctx, isBelow, isSame, type Paxos, type Proposal, type State, shapes } from "./vocabulary.ts";

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
