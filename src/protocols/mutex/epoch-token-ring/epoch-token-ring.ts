/**
 * Token ring that survives its holder: a lost token is made anew in a higher epoch, for which a majority has voted.
 * Le Lann, "Distributed Systems: Towards a Formal Approach", IFIP 1977, for the ring and the election of who makes the
 * token; leases as in Gray & Cheriton, "Leases: An Efficient Fault-Tolerant Mechanism", SOSP 1989.
 *
 * Assumes   crash-recovery nodes that keep their journal; what is sent to a process that crashes does not reach its next
 *           run; a majority is up and connected, and in the end messages are faster than leases, for liveness only.
 * Safety    at most one token an epoch, so no two entries carry the same token: under any delay, loss, duplication,
 *           partition, crash and recovery. ME1: at most one node is inside, while the speeds of clocks are right to within
 *           `drift`; delays do not matter. Not ME3: the order of entries is that of the ring.
 * Liveness  ME2: every request of a node that stays up and connected to a majority is granted in the end.
 * Cost      as a token ring: N messages a round, and none for an entry while a round takes less than `renewMs`. Otherwise
 *           2(N − 1) for an entry, and for each `renewMs` inside. 2(N − 1) to make a new token.
 *
 * A node that has seen the token, or voted for a new one, votes for no other for a lease and its margin. So a node is
 * certain of its token for `leaseMs` from the time at which it asked, or passed the token on, once a majority has
 * answered since, or has had the token in its hands. It is told that its permission is lost before anybody else can get it.
 */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { Context, NodeId, Property, Protocol } from "../../../core/protocol.ts";
import { majority } from "../../../core/quorums.ts";
import { list, natural, nullable } from "../../../core/shape.ts";
import { boundMs, type LeaseTimer, leaseOptions, requireLease } from "../../leases.ts";
import { exclude, include } from "../../node-set.ts";
import { nodeIds, type OptionsOf, option, optionTable, positive } from "../../options.ts";
import {
  ENTRIES,
  EPOCHS,
  eachOnce,
  epochOf,
  fence,
  grantedTokens,
  isBeyond,
  mutexProperties,
  type Section,
} from "../family/workload.ts";

export type EpochTokenRing = {
  state: {
    section: Section;
    /** The others, clockwise from here. */
    successors: NodeId[];
    /** Tokens and renewals of lower epochs are dropped. */
    epoch: number;
    /** The highest epoch that this node has promised, to which node, or has seen. Journalled. */
    promised: number;
    promisedTo: NodeId | null;
    token: Token | null;
    /** How often the token had been passed on when it was here last: a copy of a message is dropped. */
    hops: number;
    watch: Watch;
    /** The timer until whose end this node is certain of its token. */
    certain: LeaseTimer | null;
    /** What will make it certain for longer. */
    round: Round | null;
    /** Rounds asked for the entry that this node waits for or is in. */
    rounds: number;
    /** Who is alive after all: it gets the token again. Ascending. */
    heard: NodeId[];
    /** By a failure detector, where there is one. Ascending. */
    suspected: NodeId[];
  };
  message:
    | ({ type: "token"; epoch: number; hops: number } & Token)
    /** May I make the token of this epoch? */
    | { type: "requestVote"; epoch: number }
    | { type: "voteGranted"; epoch: number }
    /** No: either the token has been seen, or an epoch that high has been promised to another. */
    | { type: "voteRefused"; promised: number }
    /** The holder asks whether its token counts. */
    | { type: "renew"; token: number; round: number }
    | { type: "confirm"; token: number; round: number };
  timer: "pass" | "watch" | "renew" | LeaseTimer;
  /** `enter` counts when released, `exit` when held; while waiting it takes the request back. */
  command: { type: "enter" } | { type: "exit" } | { type: "suspect"; node: NodeId } | { type: "restore"; node: NodeId };
  event:
    | { type: "entered"; token: number }
    | { type: "exited" }
    /** It is certain until the deadline. */
    | { type: "confirmed"; token: number }
    /** Somebody else may be inside from now on. */
    | { type: "lost"; token: number };
  record: { type: "promised"; epoch: number; to: NodeId | null };
};

interface Token {
  /** How many entries there have been in this epoch. */
  entries: number;
  /** Who is passed over: it did not answer when the token was made. Ascending. */
  skipped: NodeId[];
  /** Who has had it, the latest last, each once. */
  lap: NodeId[];
}

/** Has seen the token lately, or voted for one; misses it; asks for votes to make it, which some have refused. */
type Watch = { is: "guarding" } | { is: "missing" } | { is: "requestingVotes"; votes: NodeId[]; beyond: number };

/** `number` 0: a lap of the token, or a vote. */
interface Round {
  by: LeaseTimer;
  number: number;
  confirmed: NodeId[];
}

const isEachOnce = eachOnce();

const properties: readonly Property<EpochTokenRing>[] = [
  ...mutexProperties<EpochTokenRing>(({ section }) => section, ["pass", "watch", "renew"]),
  {
    name: "one token an epoch",
    claim:
      "no two nodes have a token of the same epoch, and no two entries have had the same number, those of nodes that have crashed since among them",
    when: "always",
    history: grantedTokens,
    holds(world) {
      const { alive, state } = world;
      const epochs = alive.filter((node) => state(node).token !== null).map((node) => state(node).epoch);
      return new Set(epochs).size === epochs.length && isEachOnce(world);
    },
  },
];

const members = list(natural, 10_000);

const declarations: Pick<
  Protocol<EpochTokenRing>,
  "shapes" | "source" | "assumes" | "properties" | "costs" | "view"
> = {
  shapes: {
    message: {
      token: { epoch: natural, hops: natural, entries: natural, skipped: members, lap: members },
      requestVote: { epoch: natural },
      voteGranted: { epoch: natural },
      voteRefused: { promised: natural },
      renew: { token: natural, round: natural },
      confirm: { token: natural, round: natural },
    },
    command: { enter: {}, exit: {}, suspect: { node: natural }, restore: { node: natural } },
    record: { promised: { epoch: natural, to: nullable(natural) } },
  },
  source: "Le Lann, IFIP 1977; Gray & Cheriton, SOSP 1989",
  assumes: [
    "journals are kept",
    "nothing that was sent to a process reaches its next run",
    "for ME1: clocks whose speeds are right to within the drift",
    "for ME2: a majority up and connected, and messages faster than leases, in the end",
  ],
  properties,
  costs: [
    { when: "one round of the token", messages: (nodes) => (nodes === 1 ? 0 : nodes) },
    { when: "a new token, or an entry after a slow round", messages: (nodes) => 2 * (nodes - 1) },
  ],
  view: ({ section, token, epoch }) => ({ role: token === null ? section : `${section}, with the token`, term: epoch }),
};

/** A token that is lost with its holder is replaced within a second. */
const epochTokenRingOptions = optionTable(
  "epoch-token-ring",
  {
    ring: option(nodeIds(10_000), [], "every node once, clockwise; empty: ascending by id"),
    idleMs: positive(5, "how long an idle holder keeps the token"),
    ...leaseOptions(600, 200),
  },
  requireLease,
);

export type EpochTokenRingOptions = OptionsOf<typeof epochTokenRingOptions>;

const { defaults } = epochTokenRingOptions;
/** Before a node was started the lock may have had the usual lease: members that put names away forget their options. */
const USUAL_GUARD_MS = boundMs(defaults.leaseMs, defaults.drift);

type State = EpochTokenRing["state"];
type Ctx = Context<EpochTokenRing>;

export function epochTokenRing(given?: Partial<EpochTokenRingOptions>): Protocol<EpochTokenRing> {
  const { ring, idleMs, leaseMs, renewMs, drift } = epochTokenRingOptions.settle(given);
  const guardMs = boundMs(leaseMs, drift);

  function take(state: State, ctx: Ctx): void {
    if (state.section !== "wanted") ctx.setTimer("pass", idleMs);
    else if (state.certain === null) beginRound(state, ctx);
    else enter(state, ctx);
  }

  function pass(state: State, ctx: Ctx): void {
    const { token, section, heard, suspected, epoch } = state;
    if (token === null || section !== "released") return;
    const skipped = token.skipped.filter((node) => !heard.includes(node));
    const next = state.successors.find((node) => !skipped.includes(node) && !suspected.includes(node));
    if (next === undefined) return ctx.setTimer("pass", idleMs); // There is nobody to pass it on to.
    state.hops += 1;
    const lap = [...token.lap.filter((node) => node !== ctx.self), ctx.self];
    ctx.send(next, { type: "token", epoch, hops: state.hops, entries: token.entries, skipped, lap });
    forgetLeases(state, ctx);
    Object.assign(state, { token: null, heard: [], rounds: 0 });
    beginLease("leaseEven", 0, state, ctx);
  }

  // Certainty.

  /** Whatever is answered from now on counts until `by` runs out, and this node itself keeps to it. */
  function beginLease(by: LeaseTimer, number: number, state: State, ctx: Ctx): void {
    ctx.setTimer(by, leaseMs);
    ctx.setTimer("renew", renewMs);
    state.round = { by, number, confirmed: [] };
    guard(state, ctx);
  }

  function beginRound(state: State, ctx: Ctx): void {
    state.rounds += 1;
    beginLease(state.certain === "leaseEven" ? "leaseOdd" : "leaseEven", state.rounds, state, ctx);
    askToConfirm(state, ctx);
  }

  // A new token.

  /** For a while this node votes for nobody, and it stops asking for votes itself. */
  function guard(state: State, ctx: Ctx, forMs = guardMs): void {
    state.watch = { is: "guarding" };
    ctx.setTimer("watch", forMs);
  }

  function callVote(epoch: number, state: State, ctx: Ctx): void {
    if (epoch >= EPOCHS) return; // It would make no safe integer. At a loss a second this takes a year.
    drop(state, ctx);
    beginLease("leaseEven", 0, state, ctx);
    promise(epoch, ctx.self, state, ctx);
    state.watch = { is: "requestingVotes", votes: [], beyond: 0 };
    requestVotes(state, ctx);
  }

  function requestVotes(state: State, ctx: Ctx): void {
    ctx.setTimer("watch", [renewMs, 2 * renewMs]); // Chance keeps two from calling votes against each other for ever.
    ctx.broadcast({ type: "requestVote", epoch: state.promised });
    makeIfGranted(state, ctx);
  }

  function makeIfGranted(state: State, ctx: Ctx): void {
    const { watch, round } = state;
    if (watch.is !== "requestingVotes" || !isMajority(watch.votes, ctx)) return;
    const skipped = ctx.peers.filter((peer) => !watch.votes.includes(peer));
    Object.assign(state, { epoch: state.promised, hops: 0, token: { entries: 0, skipped, lap: [] }, heard: [] });
    Object.assign(state, { certain: round?.by ?? null, round: null });
    guard(state, ctx);
    take(state, ctx);
  }

  /** False if the epoch is over. Otherwise this node votes for nobody for a while. */
  function witness(epoch: number, state: State, ctx: Ctx): boolean {
    if (epoch < state.epoch) return false;
    // Who had the token before this node called a vote does not count for the lease that the vote began.
    if (epoch > state.epoch || state.watch.is === "requestingVotes") drop(state, ctx);
    if (epoch > state.promised) promise(epoch, null, state, ctx);
    if (epoch > state.epoch) Object.assign(state, { epoch, hops: 0 });
    guard(state, ctx);
    return true;
  }

  return {
    name: "epoch-token-ring",
    init(self, peers) {
      const nodes = clockwise(ring, self, peers);
      const place = nodes.indexOf(self);
      return {
        section: "released",
        successors: [...nodes.slice(place + 1), ...nodes.slice(0, place)],
        epoch: 0,
        promised: 0,
        promisedTo: null,
        token: null,
        hops: 0,
        watch: { is: "missing" },
        certain: null,
        round: null,
        rounds: 0,
        heard: [],
        suspected: [],
      };
    },
    start(state, ctx) {
      if (state.promised > 0)
        guard(state, ctx, Math.max(guardMs, USUAL_GUARD_MS)); // It may have seen the token just before it crashed.
      else if (clockwise(ring, ctx.self, ctx.peers)[0] === ctx.self) callVote(1, state, ctx);
      else ctx.setTimer("watch", [guardMs, guardMs + renewMs]);
    },
    receive: {
      token(state, _from, { epoch, hops, entries, skipped, lap }, ctx) {
        if (isBeyond(epoch, entries)) return;
        if (epoch === state.epoch && hops <= state.hops) return; // A copy of what has been here.
        const { round } = state;
        if (!witness(epoch, state, ctx)) return;
        Object.assign(state, { token: { entries, skipped, lap }, hops });
        const since = lap.indexOf(ctx.self);
        if (round !== null && round === state.round && since >= 0 && isMajority(lap.slice(since + 1), ctx)) {
          Object.assign(state, { certain: round.by, round: null });
        } else forgetLeases(state, ctx);
        take(state, ctx);
      },
      requestVote(state, from, { epoch }, ctx) {
        include(state.heard, from);
        if (isBeyond(epoch)) return;
        if (epoch === state.promised && state.promisedTo === from)
          return ctx.send(from, { type: "voteGranted", epoch });
        const isTaken = state.watch.is === "guarding" || state.section === "held";
        if (isTaken || epoch <= state.promised)
          return ctx.send(from, { type: "voteRefused", promised: state.promised });
        drop(state, ctx);
        promise(epoch, from, state, ctx);
        Object.assign(state, { epoch, hops: 0, heard: [] });
        guard(state, ctx);
        ctx.send(from, { type: "voteGranted", epoch });
      },
      voteGranted(state, from, { epoch }, ctx) {
        include(state.heard, from);
        if (state.watch.is !== "requestingVotes" || epoch !== state.promised) return; // Of a vote that is over.
        include(state.watch.votes, from);
        makeIfGranted(state, ctx);
      },
      voteRefused(state, _from, { promised }) {
        if (state.watch.is === "requestingVotes") state.watch.beyond = Math.max(state.watch.beyond, promised);
      },
      renew(state, from, { token, round }, ctx) {
        if (witness(epochOf(token), state, ctx)) ctx.send(from, { type: "confirm", token, round });
        else include(state.heard, from); // It was passed over while it was out of reach, and keeps a token that is over.
      },
      confirm(state, from, { token, round }, ctx) {
        const isAwaited = state.token !== null && token === number(state, state.token) && round === state.round?.number;
        if (!isAwaited || state.round === null) return; // Of a round that is over.
        include(state.round.confirmed, from);
        concludeIfConfirmed(state, ctx);
      },
    },
    timeout: {
      pass,
      watch(state, ctx) {
        const { watch, promised } = state;
        if (watch.is === "requestingVotes" && watch.beyond < promised) return requestVotes(state, ctx);
        if (watch.is !== "guarding")
          return callVote(1 + Math.max(promised, watch.is === "requestingVotes" ? watch.beyond : 0), state, ctx);
        state.watch = { is: "missing" };
        ctx.setTimer("watch", [1, renewMs]);
      },
      renew(state, ctx) {
        if (state.token === null || state.section === "released") return forgetLeases(state, ctx); // The lap takes too long.
        if (state.round === null) return beginRound(state, ctx);
        ctx.setTimer("renew", renewMs);
        askToConfirm(state, ctx);
      },
      leaseEven: (state, ctx) => leaseOut("leaseEven", state, ctx),
      leaseOdd: (state, ctx) => leaseOut("leaseOdd", state, ctx),
    },
    command: {
      enter(state, _command, ctx) {
        if (state.section !== "released") return; // It asks already, or is inside.
        state.section = "wanted";
        if (state.token !== null) take(state, ctx);
      },
      exit(state, _command, ctx) {
        const { section, token } = state;
        if (section === "released") return; // It is not inside.
        state.section = "released";
        if (section === "held") ctx.emit({ type: "exited" });
        else if (token !== null) token.entries += 1; // Confirmations of this number may be on their way.
        pass(state, ctx);
      },
      suspect: (state, { node }) => include(state.suspected, node),
      restore(state, { node }) {
        exclude(state.suspected, node);
        include(state.heard, node);
      },
    },
    replay,
    ...declarations,
  };
}

const isMajority = (others: readonly NodeId[], ctx: Ctx): boolean =>
  others.length + 1 >= majority(ctx.peers.length + 1);

/** The number of the entry that this node is in, or will be in with the token that it has. */
const number = ({ section, epoch }: State, { entries }: Token): number =>
  fence(epoch, section === "held" ? entries : entries + 1);

function enter(state: State, ctx: Ctx): void {
  const { token, certain } = state;
  if (token === null || certain === null) return; // Neither is so where it is called.
  ctx.cancelTimer("pass");
  if (token.entries + 1 >= ENTRIES) return drop(state, ctx); // The numbers of this epoch are used up.
  token.entries += 1;
  state.section = "held";
  const entered = number(state, token);
  ctx.emit({ type: "entered", token: entered });
  ctx.emit({ type: "confirmed", token: entered }, certain);
}

/** The token is not this node's any more, and if it was inside it has lost its permission. */
function drop(state: State, ctx: Ctx): void {
  const { token, section } = state;
  forgetLeases(state, ctx);
  ctx.cancelTimer("pass");
  ctx.cancelTimer("renew");
  if (token !== null && section === "held") {
    ctx.emit({ type: "lost", token: number(state, token) });
    state.section = "released";
  }
  Object.assign(state, { token: null, rounds: 0 });
}

function askToConfirm(state: State, ctx: Ctx): void {
  const { token, round } = state;
  if (token === null || round === null) return;
  for (const peer of ctx.peers)
    if (!round.confirmed.includes(peer))
      ctx.send(peer, { type: "renew", token: number(state, token), round: round.number });
  concludeIfConfirmed(state, ctx); // Alone, it has nobody to wait for.
}

function concludeIfConfirmed(state: State, ctx: Ctx): void {
  const { round, token, certain, section } = state;
  if (round === null || token === null || !isMajority(round.confirmed, ctx)) return;
  if (certain !== null) ctx.cancelTimer(certain);
  Object.assign(state, { certain: round.by, round: null });
  if (section === "wanted") enter(state, ctx);
  else if (section === "held") ctx.emit({ type: "confirmed", token: number(state, token) }, round.by);
}

function forgetLeases(state: State, ctx: Ctx): void {
  ctx.cancelTimer("leaseEven");
  ctx.cancelTimer("leaseOdd");
  Object.assign(state, { certain: null, round: null });
}

function leaseOut(by: LeaseTimer, state: State, ctx: Ctx): void {
  const { section, token, certain, round } = state;
  if (round?.by === by) state.round = null; // Answers to it would come too late.
  if (certain === by) state.certain = null;
  if (token === null || section === "released") return;
  // The node that a waiting holder needs may have promised a higher epoch: asking on and on it would only keep the new token away.
  if (by === (section === "held" ? certain : round?.by)) drop(state, ctx);
}

function promise(epoch: number, to: NodeId | null, state: State, ctx: Ctx): void {
  Object.assign(state, { promised: epoch, promisedTo: to });
  ctx.compact([{ type: "promised", epoch, to }]);
}

/** All nodes, from the first of the ring on. */
function clockwise(ring: readonly NodeId[], self: NodeId, peers: readonly NodeId[]): readonly NodeId[] {
  const nodes = [...peers, self].sort((a, b) => a - b);
  if (ring.length === 0) return nodes;
  if (ring.length === nodes.length && nodes.every((node) => ring.includes(node))) return ring;
  throw new UsageError("bad-option", unexpected("epoch-token-ring.ring", "every node once", ring));
}

const replay: Protocol<EpochTokenRing>["replay"] = {
  promised: (state, { epoch, to }) => Object.assign(state, { epoch, promised: epoch, promisedTo: to }),
};
