/**
 * Multi-Paxos: a sequence of Paxos instances, one per slot of the log, with a stable proposer. Phase 1 runs once for
 * all slots. From then on, a command costs one round trip.
 * Lamport, "Paxos Made Simple", 2001, §3; leases, snapshots and catch-up as in Chandra, Griesemer & Redstone, "Paxos
 * Made Live", PODC 2007; members as in Lamport, Malkhi & Zhou, "Reconfiguring a State Machine", SIGACT News 2010.
 *
 * Assumes   crash-recovery nodes with a journal. For reads under a lease alone: clock rates differ by at most `drift`,
 *           and leaders are not paused, because a paused leader cannot give up its lease. For liveness: a majority is
 *           alive; links are eventually reliable and delays eventually bounded.
 * Safety    agreement: no two nodes decide differently in a slot, under any delay, loss, duplication, reordering, crash
 *           and recovery. Integrity: every decided value was proposed, or is a no-op or a membership.
 * Liveness  eventually one node leads, and a command that is proposed repeatedly is decided.
 * Cost      2(N − 1) messages and two message delays for a command at the leader: accept and accepted. N − 1 more for
 *           decision notices, unless a later proposal carries the decision. 2(N − 1) once for each takeover: prepare
 *           and promise. 2(N − 1) for each heartbeat.
 */

import type { NodeId, Protocol } from "../../../core/protocol.ts";
import type { Command } from "../family/replicated-log.ts";
import { textOf } from "../family/replicated-log.ts";
import {
  accept,
  answerCatchUp,
  askToCatchUp,
  bind,
  type Ctx,
  cut,
  decideUpTo,
  follow,
  forget,
  handOver,
  hear,
  leave,
  promise,
  raise,
  see,
  serveReads,
  stepDown,
  takeChunk,
  takeEntries,
  tell,
  tellSnapshot,
  yieldTo,
} from "./decisions.ts";
import {
  answerToAuxiliary,
  beat,
  enqueue,
  followerOf,
  noteAccepted,
  noteConfirm,
  progress,
  read,
} from "./leadership.ts";
import { campaign, catchUpFirst, isBehind, leadIfPromised, notePromise, promiseTo, retry } from "./phase-one.ts";
import { declarations } from "./properties.ts";
import {
  attemptOf,
  type Ballot,
  currentConfiguration,
  isAuxiliary,
  isForeign,
  isMembership,
  isSame,
  isStale,
  type Leader,
  type MultiPaxos,
  type MultiPaxosOptions,
  pendingConfiguration,
  type Settings,
  type State,
  settled,
  sorted,
} from "./vocabulary.ts";

export type { MultiPaxos, MultiPaxosOptions } from "./vocabulary.ts";

/** Creates Multi-Paxos as a replicated log. @throws UsageError `bad-option` if an option is unknown or out of range. */
export const multiPaxos = (given?: Partial<MultiPaxosOptions>): Protocol<MultiPaxos> =>
  multiPaxosWith("multi-paxos", settled(given), () => []);

/**
 * Creates a variant of Multi-Paxos. @param auxiliariesOf selects the nodes that accept only while a main node has
 * failed
 */
export function multiPaxosWith(
  name: string,
  settings: Settings,
  auxiliariesOf: (nodes: readonly NodeId[]) => NodeId[],
): Protocol<MultiPaxos> {
  return {
    name,
    init: (self, peers) =>
      initial(
        settings,
        self,
        [self, ...peers].sort((a, b) => a - b),
        auxiliariesOf,
      ),
    start(state, ctx) {
      const { snapshot, promised } = state;
      state.isRestored = false;
      if (snapshot !== null) tellSnapshot(state, snapshot, ctx);
      if (isAuxiliary(state, ctx.self)) askToForget(state, ctx);
      else tell(state, snapshot?.index ?? 0, ctx);
      // This node may have promised, or confirmed a heartbeat, just before it crashed.
      if (promised.round > 0 && promised.node !== ctx.self) bind(state, settings, ctx);
      else if (!isAuxiliary(state, ctx.self)) ctx.setTimer("election", settings.backOff);
    },
    receive: { ...asAcceptor(settings), ...asProposer(settings), ...asLearner(settings) },
    timeout: timeouts(settings),
    command: commands(settings),
    replay: replays(settings),
    ...declarations(settings),
  };
}

function initial(
  { voters, learners }: Settings,
  self: NodeId,
  nodes: readonly NodeId[],
  auxiliariesOf: (nodes: readonly NodeId[]) => NodeId[],
): State {
  const first = voters.length > 0 ? [...voters] : nodes.filter((node) => !learners.includes(node));
  return {
    role: { is: "follower" },
    round: 0,
    promised: { round: 0, node: self },
    isBound: false,
    leader: null,
    log: {},
    decided: 0,
    snapshot: null,
    configurations: [{ from: 1, ...sorted({ voters: first, learners: [...learners] }) }],
    waiting: [],
    reads: [],
    incoming: null,
    isRestored: false,
    auxiliaries: auxiliariesOf(nodes),
  };
}

/**
 * Asks which slots this auxiliary may drop, if it stores any. It asks all main nodes, because any of them may be the
 * leader.
 */
function askToForget({ log, decided, auxiliaries }: State, ctx: Ctx): void {
  if (Object.keys(log).length === 0) return;
  for (const node of ctx.peers)
    if (!auxiliaries.includes(node)) ctx.send(node, { type: "catchUp", decided, index: 0, offset: 0 });
}

type Table = Protocol<MultiPaxos>["receive"];

function refuse(state: State, to: NodeId, ballot: Ballot, ctx: Ctx): void {
  const { promised, decided, role, leader } = state;
  ctx.send(to, { type: "nack", ballot, promised, decided, leader: role.is === "leader" ? ctx.self : leader });
}

/**
 * Returns whether this node leads or is bound to a leader other than `node`. A leader that has stepped down in favor of
 * `node` does not count.
 */
const isBoundAgainst = ({ role, isBound, promised }: State, node: NodeId, released: Ballot | null): boolean =>
  role.is === "leader" || (isBound && promised.node !== node && !(released !== null && isSame(promised, released)));

/**
 * Returns whether the slot is so far beyond the slots decided here that the acceptor must catch up first. At an
 * auxiliary: whether its log is full.
 */
function isTooFar(state: State, slot: number, { tail }: Settings, self: NodeId): boolean {
  if (!isAuxiliary(state, self)) return slot > state.decided + tail;
  return state.log[slot] === undefined && Object.keys(state.log).length >= tail;
}

const asAcceptor = (settings: Settings): Pick<Table, "prepare" | "accept" | "heartbeat" | "forget"> => ({
  prepare(state, from, { ballot, from: slot, released }, ctx) {
    if (isForeign(from, ballot)) return;
    if (isStale(state, ballot) || isBoundAgainst(state, from, released)) return refuse(state, from, ballot, ctx);
    yieldTo(state, ballot, settings, ctx);
    promiseTo(state, from, ballot, slot, ctx);
  },
  accept(state, from, { ballot, slot, value, decided }, ctx) {
    if (isForeign(from, ballot)) return;
    if (isStale(state, ballot)) return refuse(state, from, ballot, ctx);
    follow(state, from, ballot, settings, ctx);
    hear(state, ballot, decided, settings, ctx);
    if (slot > state.decided && isTooFar(state, slot, settings, ctx.self)) return;
    if (slot > state.decided) accept(state, slot, { ballot, value }, ctx);
    else promise(state, ballot, ctx); // The slot is already decided with this value.
    ctx.send(from, { type: "accepted", ballot, slot, decided: state.decided });
  },
  heartbeat(state, from, { ballot, round, decided }, ctx) {
    if (isForeign(from, ballot)) return;
    if (isStale(state, ballot)) return refuse(state, from, ballot, ctx);
    promise(state, ballot, ctx);
    follow(state, from, ballot, settings, ctx);
    bind(state, settings, ctx);
    hear(state, ballot, decided, settings, ctx);
    ctx.send(from, { type: "confirm", ballot, round, decided: state.decided });
    if (state.decided < decided) askToCatchUp(state, from, ctx);
  },
  forget(state, from, { ballot, index }, ctx) {
    if (isForeign(from, ballot) || isStale(state, ballot)) return;
    if (isAuxiliary(state, ctx.self) && index > state.decided) forget(state, index, ctx);
  },
});

const asProposer = (settings: Settings): Pick<Table, "promise" | "accepted" | "confirm" | "nack" | Asked> => ({
  promise(state, from, message, ctx) {
    const attempt = attemptOf(state, message.ballot);
    if (attempt === null) return; // This answers an earlier ballot.
    if (attempt.is === "leader" && isBehind(attempt, message)) return catchUpFirst(state, from, settings, ctx);
    notePromise(state, attempt, from, message, settings, ctx);
    if (attempt.is === "candidate") leadIfPromised(state, settings, ctx);
    else progress(state, settings, ctx);
  },
  accepted(state, from, { ballot, slot, decided }, ctx) {
    const { role } = state;
    if (role.is !== "leader" || attemptOf(state, ballot) === null) return;
    followerOf(role, from).decided = decided;
    noteAccepted(role, from, slot);
    progress(state, settings, ctx);
  },
  confirm(state, from, { ballot, round, decided }, ctx) {
    const { role } = state;
    if (role.is !== "leader" || attemptOf(state, ballot) === null) return;
    Object.assign(followerOf(role, from), { silent: 0, decided });
    noteConfirm(state, role, from, round, settings, ctx);
  },
  nack(state, from, { ballot, promised, decided, leader }, ctx) {
    state.round = Math.max(state.round, promised.round);
    if (decided > state.decided && state.role.is !== "leader") askToCatchUp(state, from, ctx);
    const attempt = attemptOf(state, ballot);
    if (attempt === null) return;
    // The refusing node has a higher id and may never become a candidate itself, so only a higher round can succeed.
    if (promised.round === ballot.round) state.round = Math.max(state.round, ballot.round + 1);
    const { boundsMs, maxBackOffMs, backOff } = settings;
    if (leader !== null && leader !== ctx.self) {
      leave(state, ctx);
      see(state, null, promised.round, ctx);
      ctx.setTimer("election", [boundsMs, boundsMs + maxBackOffMs]); // By then, a live leader has sent something.
    } else if (attempt.is === "leader")
      campaign(state, settings, ctx); // The acceptor has promised a higher ballot. Repeat phase 1 with a higher one.
    else ctx.setTimer("election", backOff);
  },
  forward(state, _from, { command }, ctx) {
    if (state.role.is === "leader") offer(state, command, settings, ctx);
    else if (hasHandedOver(state, ctx.self)) enqueue(state, command, settings); // Forwarded to the new leader later.
  },
  forwardMembers(state, _from, { members }, ctx) {
    if (state.role.is === "leader") commands(settings).reconfigure(state, { type: "reconfigure", ...members }, ctx);
  },
  forwardRead(state, from, { read: number }, ctx) {
    if (state.role.is === "leader") read(state, state.role, from, number, settings, ctx);
  },
  forwardTransfer(state, _from, { to }, ctx) {
    if (state.role.is === "leader") transfer(state, state.role, to, settings, ctx);
  },
  takeOver(state, from, { ballot }, ctx) {
    // Late or duplicated.
    if (isForeign(from, ballot) || !isSame(state.promised, ballot) || isAuxiliary(state, ctx.self)) return;
    campaign(state, settings, ctx, ballot);
  },
});
type Asked = "forward" | "forwardMembers" | "forwardRead" | "forwardTransfer" | "takeOver";

const hasHandedOver = ({ role, isBound, promised }: State, self: NodeId): boolean =>
  role.is === "follower" && isBound && promised.node === self;

/**
 * Hands over to another main node that votes in the current configuration, unless the configuration is about to change.
 */
function transfer(state: State, role: Leader, to: NodeId, settings: Settings, ctx: Ctx): void {
  const isHeir = to !== ctx.self && !isAuxiliary(state, to) && currentConfiguration(state).voters.includes(to);
  if (isHeir && pendingConfiguration(state) === null) handOver(state, role, to, settings, ctx);
}

const asLearner = (settings: Settings): Pick<Table, "decided" | "catchUp" | "learn" | "chunk" | "readAt"> => ({
  decided(state, from, { ballot, decided }, ctx) {
    if (isForeign(from, ballot) || isStale(state, ballot)) return;
    hear(state, ballot, decided, settings, ctx);
  },
  catchUp(state, from, message, ctx) {
    if (isAuxiliary(state, from)) answerToAuxiliary(state, from, ctx);
    else answerCatchUp(state, from, message, ctx);
  },
  learn(state, from, message, ctx) {
    if (state.role.is === "leader" || isAuxiliary(state, ctx.self)) return; // Late: a leader already knows more.
    takeEntries(state, from, message, settings, ctx);
    leadIfPromised(state, settings, ctx);
  },
  chunk(state, from, message, ctx) {
    if (state.role.is === "leader" || isAuxiliary(state, ctx.self)) return;
    takeChunk(state, from, message, ctx);
    leadIfPromised(state, settings, ctx);
  },
  readAt(state, _from, { read: number, index }, ctx) {
    if (state.reads.length < settings.maxWaiting) state.reads.push({ read: number, index });
    serveReads(state, ctx);
  },
});

const timeouts = (settings: Settings): Protocol<MultiPaxos>["timeout"] => {
  function expire(state: State, ctx: Ctx): void {
    if (state.role.is === "leader") stepDown(state, settings, ctx);
  }
  return {
    election(state, ctx) {
      if (!state.isBound && state.role.is !== "leader") retry(state, settings, ctx);
    },
    bound(state, ctx) {
      state.isBound = false;
      if (state.role.is !== "follower") return;
      see(state, null, state.promised.round, ctx);
      if (!isAuxiliary(state, ctx.self)) ctx.setTimer("election", settings.backOff);
    },
    heartbeat(state, ctx) {
      if (state.role.is === "leader") beat(state, state.role, settings, ctx);
    },
    leaseEven: expire,
    leaseOdd: expire,
  };
};

function offer(state: State, command: Command, settings: Settings, ctx: Ctx): void {
  enqueue(state, command, settings);
  progress(state, settings, ctx);
}

const commands = (settings: Settings): Protocol<MultiPaxos>["command"] => ({
  propose(state, { command }, ctx) {
    if (isAuxiliary(state, ctx.self)) return; // An auxiliary learns nothing, so it has no clients.
    if (state.role.is === "leader") return offer(state, command, settings, ctx);
    if (state.leader !== null) return ctx.send(state.leader, { type: "forward", command });
    enqueue(state, command, settings);
    if (state.role.is === "follower" && !state.isBound && !state.isRestored) campaign(state, settings, ctx);
  },
  compact: (state, { index, snapshot }, ctx) => cut(state, index, textOf(snapshot), settings, ctx),
  read(state, { read: number }, ctx) {
    if (state.role.is === "leader") return read(state, state.role, ctx.self, number, settings, ctx);
    if (state.leader !== null) ctx.send(state.leader, { type: "forwardRead", read: number });
  },
  transfer(state, { to }, ctx) {
    if (state.role.is === "leader") return transfer(state, state.role, to, settings, ctx);
    if (state.leader !== null) ctx.send(state.leader, { type: "forwardTransfer", to });
  },
  reconfigure(state, { voters, learners }, ctx) {
    const members = sorted({ voters, learners });
    if (!isMembership(members, [ctx.self, ...ctx.peers]) || state.auxiliaries.length > 0) return; // Not in Cheap Paxos.
    if (state.role.is === "leader") {
      state.role.wanted = members;
      progress(state, settings, ctx);
    } else if (state.leader !== null) ctx.send(state.leader, { type: "forwardMembers", members });
  },
});

const replays = (settings: Settings): Protocol<MultiPaxos>["replay"] => ({
  promised(state, { ballot }) {
    state.isRestored = true;
    raise(state, ballot);
  },
  accepted(state, { slot, ballot, value, decided }) {
    state.isRestored = true;
    raise(state, ballot);
    state.log[slot] = { ballot, value };
    decideUpTo(state, decided, settings);
  },
  snapshot(state, { index, configurations }) {
    state.snapshot = { index, text: "", configurations };
    state.configurations = [...configurations];
    state.decided = index;
  },
  snapshotText(state, { text }) {
    if (state.snapshot !== null) state.snapshot.text += text;
  },
  forgotten(state, { index }) {
    state.decided = index;
  },
});
