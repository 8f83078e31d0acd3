/**
 * Token ring that survives a crash of the holder: a lost token is replaced in a higher epoch, after a majority vote. Le
 * Lann, "Distributed Systems: Towards a Formal Approach", IFIP 1977, for the ring and the election of the node that
 * creates the token; leases as in Gray & Cheriton, "Leases: An Efficient Fault-Tolerant Mechanism", SOSP 1989.
 *
 * Assumes   crash-recovery nodes that keep their journal; messages to a process that crashes do not reach its next run;
 *           for liveness only, a connected majority is up, and message delays are eventually shorter than leases.
 * Safety    at most one token per epoch, so no two entries have the same token, despite any delays, losses, duplicates,
 *           partitions, crashes and recoveries. ME1: at most one node is inside while clock speeds are accurate to
 *           within `drift`, despite any delays. Not ME3: entries follow the order of the ring.
 * Liveness  ME2: every request from a node that stays up and connected to a majority is eventually granted.
 * Cost      the same as a token ring: N messages per round, and none for an entry if a round takes less than `renewMs`.
 *           Otherwise, 2(N − 1) messages for an entry and for each `renewMs` inside. 2(N − 1) messages to create a new
 *           token.
 *
 * A node that has seen the token, or voted for a new one, does not vote for another token for the duration of a lease
 * and its margin. The holder's lease therefore lasts `leaseMs` from when it sent a renewal or passed the token on,
 * provided that a majority has since answered or held the token. The holder learns that it has lost its permission
 * before another node can acquire it.
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

/** Vocabulary of the epoch token ring. */
export type EpochTokenRing = {
  state: {
    section: Section;
    /** The other nodes, clockwise from this one. */
    successors: NodeId[];
    /** The current epoch. The node ignores tokens and renewals from lower epochs. */
    epoch: number;
    /** The highest epoch that this node has seen or promised, and the node it is promised to. Journaled. */
    promised: number;
    promisedTo: NodeId | null;
    token: Token | null;
    /** The token's hop count when this node last had it. Used to detect duplicate messages. */
    hops: number;
    watch: Watch;
    /** The timer that ends this node's current lease. */
    certain: LeaseTimer | null;
    /** The round that will extend the lease once it is confirmed. */
    round: Round | null;
    /** The number of renewal rounds for the current request or entry. */
    rounds: number;
    /** Nodes that have turned out to be alive, in ascending order. The token is no longer passed around them. */
    heard: NodeId[];
    /** The nodes that the failure detector (if there is one) suspects, in ascending order. */
    suspected: NodeId[];
  };
  message:
    | ({ type: "token"; epoch: number; hops: number } & Token)
    /** Requests a vote to create the token for this epoch. */
    | { type: "requestVote"; epoch: number }
    | { type: "voteGranted"; epoch: number }
    /**
     * Refuses a vote, because the sender has recently seen the token, or has promised an epoch that is at least as high
     * to a different node.
     */
    | { type: "voteRefused"; promised: number }
    /** Asks whether the sender's token is still valid. */
    | { type: "renew"; token: number; round: number }
    | { type: "confirm"; token: number; round: number };
  timer: "pass" | "watch" | "renew" | LeaseTimer;
  /** `enter` is ignored unless the section is `released`. `exit` leaves the section, or withdraws a waiting request. */
  command: { type: "enter" } | { type: "exit" } | { type: "suspect"; node: NodeId } | { type: "restore"; node: NodeId };
  event:
    | { type: "entered"; token: number }
    | { type: "exited" }
    /** The permission is confirmed. The lease lasts until the deadline. */
    | { type: "confirmed"; token: number }
    /** The permission has been lost. From now on, another node may be inside. */
    | { type: "lost"; token: number };
  record: { type: "promised"; epoch: number; to: NodeId | null };
};

interface Token {
  /** The number of entries in this epoch. */
  entries: number;
  /** Nodes to skip because they did not answer when the token was created, in ascending order. */
  skipped: NodeId[];
  /** The nodes that have held the token, without duplicates, with the latest one last. */
  lap: NodeId[];
}

/**
 * The node's relation to the token. `guarding`: has recently seen the token, or voted for one. `missing`: has not seen
 * the token for too long. `requestingVotes`: is requesting votes to create it; `beyond` comes from refusals.
 */
type Watch = { is: "guarding" } | { is: "missing" } | { is: "requestingVotes"; votes: NodeId[]; beyond: number };

/** A round that extends the lease. If `number` is 0, the round is a lap of the token, or a vote. */
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
      "no two nodes have a token for the same epoch, and no two entries had the same number, including entries by crashed nodes",
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
    "no message to a process is delivered to its next run",
    "for ME1: clock rates within the drift",
    "for ME2: eventually a live, connected majority, and message delays shorter than leases",
  ],
  properties,
  costs: [
    { when: "one round of the token", messages: (nodes) => (nodes === 1 ? 0 : nodes) },
    { when: "a new token, or an entry after a slow round", messages: (nodes) => 2 * (nodes - 1) },
  ],
  view: ({ section, token, epoch }) => ({ role: token === null ? section : `${section}, with the token`, term: epoch }),
};

/** The ring's options. With the defaults, a token lost with its holder is replaced within a second. */
const epochTokenRingOptions = optionTable(
  "epoch-token-ring",
  {
    ring: option(nodeIds(10_000), [], "every node once, clockwise; if empty, in ascending order of id"),
    idleMs: positive(5, "how long an idle holder keeps the token"),
    ...leaseOptions(600, 200),
  },
  requireLease,
);

/** Options of `epochTokenRing()`. */
export type EpochTokenRingOptions = OptionsOf<typeof epochTokenRingOptions>;

const { defaults } = epochTokenRingOptions;
/**
 * The minimum time that a restarted node guards the token. Before the restart, the lock may have used the default
 * lease, because members that close a name do not remember its options.
 */
const USUAL_GUARD_MS = boundMs(defaults.leaseMs, defaults.drift);

type State = EpochTokenRing["state"];
type Ctx = Context<EpochTokenRing>;

/**
 * Creates the epoch token ring.
 * @throws UsageError if an option is unknown or out of range, or at `init` if the ring does not list every node once.
 */
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
    if (next === undefined) return ctx.setTimer("pass", idleMs); // There is no node to pass the token to.
    state.hops += 1;
    const lap = [...token.lap.filter((node) => node !== ctx.self), ctx.self];
    ctx.send(next, { type: "token", epoch, hops: state.hops, entries: token.entries, skipped, lap });
    forgetLeases(state, ctx);
    Object.assign(state, { token: null, heard: [], rounds: 0 });
    beginLease("leaseEven", 0, state, ctx);
  }

  // Leases.

  /** Starts a lease. From now on, replies count until `by` expires. This node also guards the token. */
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

  // Replacement of a lost token.

  /** For a while, does not vote for another node or request votes. */
  function guard(state: State, ctx: Ctx, forMs = guardMs): void {
    state.watch = { is: "guarding" };
    ctx.setTimer("watch", forMs);
  }

  function callVote(epoch: number, state: State, ctx: Ctx): void {
    if (epoch >= EPOCHS) return; // The token would not be a safe integer. At one loss per second, this takes a year.
    drop(state, ctx);
    beginLease("leaseEven", 0, state, ctx);
    promise(epoch, ctx.self, state, ctx);
    state.watch = { is: "requestingVotes", votes: [], beyond: 0 };
    requestVotes(state, ctx);
  }

  function requestVotes(state: State, ctx: Ctx): void {
    ctx.setTimer("watch", [renewMs, 2 * renewMs]); // The random wait keeps two nodes from competing forever.
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

  /**
   * Registers a message from an epoch. Returns false if the epoch is over. Otherwise, this node does not vote for
   * another node for a while.
   */
  function witness(epoch: number, state: State, ctx: Ctx): boolean {
    if (epoch < state.epoch) return false;
    // The token's earlier holders do not count toward the lease that began with this node's vote.
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
        guard(state, ctx, Math.max(guardMs, USUAL_GUARD_MS)); // It may have seen the token just before a crash.
      else if (clockwise(ring, ctx.self, ctx.peers)[0] === ctx.self) callVote(1, state, ctx);
      else ctx.setTimer("watch", [guardMs, guardMs + renewMs]);
    },
    receive: {
      token(state, _from, { epoch, hops, entries, skipped, lap }, ctx) {
        if (isBeyond(epoch, entries)) return;
        if (epoch === state.epoch && hops <= state.hops) return; // A copy of a token that this node has already had.
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
        // The answer belongs to a vote that is over.
        if (state.watch.is !== "requestingVotes" || epoch !== state.promised) return;
        include(state.watch.votes, from);
        makeIfGranted(state, ctx);
      },
      voteRefused(state, _from, { promised }) {
        if (state.watch.is === "requestingVotes") state.watch.beyond = Math.max(state.watch.beyond, promised);
      },
      renew(state, from, { token, round }, ctx) {
        if (witness(epochOf(token), state, ctx)) ctx.send(from, { type: "confirm", token, round });
        else include(state.heard, from); // The sender was skipped while unreachable, and has an old token.
      },
      confirm(state, from, { token, round }, ctx) {
        const isAwaited = state.token !== null && token === number(state, state.token) && round === state.round?.number;
        if (!isAwaited || state.round === null) return; // The answer belongs to a round that is over.
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
        if (state.section !== "released") return; // The node is already waiting or inside.
        state.section = "wanted";
        if (state.token !== null) take(state, ctx);
      },
      exit(state, _command, ctx) {
        const { section, token } = state;
        if (section === "released") return; // The node is not inside.
        state.section = "released";
        if (section === "held") ctx.emit({ type: "exited" });
        else if (token !== null) token.entries += 1; // Confirmations for this number may still be in flight.
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

/** Returns the number of the current entry, or of the next entry that the token allows. */
const number = ({ section, epoch }: State, { entries }: Token): number =>
  fence(epoch, section === "held" ? entries : entries + 1);

function enter(state: State, ctx: Ctx): void {
  const { token, certain } = state;
  if (token === null || certain === null) return; // This cannot happen at the call sites.
  ctx.cancelTimer("pass");
  if (token.entries + 1 >= ENTRIES) return drop(state, ctx); // The tokens for this epoch have been used up.
  token.entries += 1;
  state.section = "held";
  const entered = number(state, token);
  ctx.emit({ type: "entered", token: entered });
  ctx.emit({ type: "confirmed", token: entered }, certain);
}

/** Gives up the token. A node that is inside loses its permission. */
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
  concludeIfConfirmed(state, ctx); // A single node needs no confirmation.
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
  if (round?.by === by) state.round = null; // Replies would come too late.
  if (certain === by) state.certain = null;
  if (token === null || section === "released") return;
  // A waiting holder may depend on a node that has promised a higher epoch. Renewing forever would only delay the new
  // token.
  if (by === (section === "held" ? certain : round?.by)) drop(state, ctx);
}

function promise(epoch: number, to: NodeId | null, state: State, ctx: Ctx): void {
  Object.assign(state, { promised: epoch, promisedTo: to });
  ctx.compact([{ type: "promised", epoch, to }]);
}

/** Returns all nodes in ring order. */
function clockwise(ring: readonly NodeId[], self: NodeId, peers: readonly NodeId[]): readonly NodeId[] {
  const nodes = [...peers, self].sort((a, b) => a - b);
  if (ring.length === 0) return nodes;
  if (ring.length === nodes.length && nodes.every((node) => ring.includes(node))) return ring;
  throw new UsageError("bad-option", unexpected("epoch-token-ring.ring", "every node once", ring));
}

const replay: Protocol<EpochTokenRing>["replay"] = {
  promised: (state, { epoch, to }) => Object.assign(state, { epoch, promised: epoch, promisedTo: to }),
};
