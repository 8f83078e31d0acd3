/**
 * The version of ring election that real processes and `join()` run. It adds receipts, numbered laps, ranks and
 * resignation to the textbook version in `ring.ts`.
 *
 * Nodes may crash at any time and recover. If the delay is bounded (T = 2·T_max + T_process exceeds a round trip), E1
 * and E2 hold when idle, for the highest rank among the alive nodes. Without such a bound, they hold eventually, if
 * each crash is reported to all nodes after the crashed node's messages have arrived. Detecting a crashed node costs
 * one extra message. Each delivered message that carries a list is acknowledged with a receipt, a separate message
 * type. The textbooks do not count receipts, and neither do the costs here.
 *
 * A successor whose receipt does not arrive within T is skipped. A failure detector may report it earlier (`suspect`).
 * A lap always ends at its caller's position, even if the caller is skipped. A lap is lost if the node that holds it
 * crashes. Its caller then calls another election or, if the caller has crashed, the participants do.
 *
 * Two laps collect different lists if a node crashed or recovered between them. So announcements are ordered by number
 * and then by caller. A lap's number exceeds the number of every announcement that the nodes along its way have
 * followed. The lower of two announcements completes its lap, but a node that has seen the higher one does not follow
 * it.
 */
import type { Context, Cost, NodeId, Property, Protocol } from "../../../core/protocol.ts";
import { list, natural, oneOf, real } from "../../../core/shape.ts";
import { exclude, include } from "../../node-set.ts";
import { type OptionsOf, optionTable } from "../../options.ts";
import { delayOptions } from "../bully/bully.ts";
import {
  hasChangedSides,
  highestOf,
  outranks,
  type Ranked,
  rankedShape,
  ranksOption,
  ringOption,
  ringOrder,
  settledRank,
  standingRank,
} from "../parts/ranks.ts";

/** A message's lap around the ring. The message is removed when it gets back to its caller. */
type Lap = { caller: NodeId; number: number; list: Ranked[] };
type Election = { type: "election" } & Lap;
type Coordinator = { type: "coordinator" } & Lap;

/** Vocabulary of the extended ring election. */
export type ExtendedRing = {
  state: {
    /** `new`: the node has not taken part in an election yet. */
    phase: "new" | "idle" | "calling" | "taking part";
    leader: NodeId | null;
    /** The nodes in the list of the followed announcement; empty before the first. */
    members: NodeId[];
    /** The followed announcement. */
    followed: { number: number; caller: NodeId };
    /** `rank` is used in future elections, `stoodWith` in the latest one. */
    rank: number;
    stoodWith: number;
    /** Whether the node has resigned. It then takes part with the lowest possible rank. */
    resigned: boolean;
    /** In ascending order. */
    suspected: NodeId[];
    /** Messages that have been sent to the successor but not yet acknowledged with a receipt. */
    handed: { to: NodeId; lap: Election | Coordinator }[];
  };
  message:
    | Election
    | Coordinator
    /** Acknowledges a message that the sender of the receipt will forward. */
    | { type: "received"; of: "election" | "coordinator"; caller: NodeId; number: number };
  timer: "receipt" | "lap";
  command:
    | { type: "call" }
    | { type: "suspect"; node: NodeId }
    | { type: "restore"; node: NodeId }
    /** Sets the rank for future elections. */
    | { type: "rank"; rank: number }
    /** Resigns. A resigning leader calls an election to choose its successor. */
    | { type: "resign" }
    /** Withdraws a resignation. */
    | { type: "stand" };
  event:
    | { type: "elected"; leader: NodeId }
    /** Reports that a node is suspected because no receipt arrived. */
    | { type: "suspected"; node: NodeId }
    /** Reports that a suspected node has just sent a message. */
    | { type: "heard"; node: NodeId };
};

const ringOptions = optionTable("ring", { ring: ringOption, ...delayOptions, ranks: ranksOption });

/** Options for `extendedRing()`. */
export type ExtendedRingOptions = OptionsOf<typeof ringOptions>;

type State = ExtendedRing["state"];
type Ctx = Context<ExtendedRing>;

/**
 * Creates the extended ring election.
 * @throws UsageError if an option is unknown or out of range, or at `init` if the ring does not list every node once.
 */
export function extendedRing(given?: Partial<ExtendedRingOptions>): Protocol<ExtendedRing> {
  const options = ringOptions.settle(given);
  const neighbour = ringOrder("ring.ring", options.ring);
  const rankAtFirst = settledRank(options.ranks);
  /** T = 2·T_max + T_process. A receipt from an alive node arrives within this time. */
  const receiptMs = 2 * options.maxDelayMs + options.processMs;
  /**
   * Returns the maximum duration of a lap. Each node on the ring forwards a message, or detects that its successor has
   * crashed, within T.
   */
  const lapMs = (ctx: Ctx): number => (ctx.peers.length + 2) * receiptMs;

  function call(state: State, ctx: Ctx): void {
    takePart(state, "calling", ctx);
    const own = { node: ctx.self, rank: state.stoodWith };
    handOn(state, { type: "election", caller: ctx.self, number: state.followed.number + 1, list: [own] }, ctx);
  }

  function takePart(state: State, phase: "calling" | "taking part", ctx: Ctx): void {
    // Use the same rank in overlapping laps, so that they do not disagree.
    if (!isElecting(state)) state.stoodWith = standingRank(state);
    if (state.phase !== "calling") state.phase = phase;
    state.leader = null;
    // Participants give the caller time to call again before they do so themselves.
    ctx.setTimer("lap", state.phase === "calling" ? lapMs(ctx) : 3 * lapMs(ctx));
  }

  /** Forwards the lap to the next unsuspected node, but no further than its caller's position. */
  function handOn(state: State, lap: Election | Coordinator, ctx: Ctx): void {
    for (let steps = 1; steps <= ctx.peers.length; steps++) {
      const to = neighbour(ctx.self, ctx.peers, steps);
      if (!state.suspected.includes(to)) {
        if (state.handed.length === 0) ctx.setTimer("receipt", receiptMs);
        // A new lap by the same caller replaces the earlier one.
        state.handed = state.handed.filter((old) => old.lap.type !== lap.type || old.lap.caller !== lap.caller);
        state.handed.push({ to, lap });
        return ctx.send(to, lap);
      }
      if (to === lap.caller) return; // The lap is over: its caller is skipped and cannot remove it.
    }
    if (lap.type === "election") announce(state, lap, ctx); // Only the caller is left.
  }

  function announce(state: State, { caller, number, list: collected }: Election, ctx: Ctx): void {
    const above = Math.max(number, state.followed.number + 1);
    // A node that crashed after the lap passed it must not lead. The caller may be the only remaining node that knows
    // of the crash.
    const members = collected.filter(({ node }) => !state.suspected.includes(node));
    const lap: Coordinator = { type: "coordinator", caller, number: above, list: members };
    follow(state, lap, ctx);
    handOn(state, lap, ctx);
    if (hasChangedSides(state)) call(state, ctx);
  }

  function follow(state: State, { caller, number, list: members }: Coordinator, ctx: Ctx): void {
    const { node: leader } = highestOf(members) as Ranked;
    state.phase = "idle";
    state.leader = leader;
    state.members = members.map(({ node }) => node);
    state.followed = { number, caller };
    ctx.cancelTimer("lap");
    ctx.emit({ type: "elected", leader });
  }

  /**
   * Suspects `node`: forwards the messages that it has not acknowledged to the next node, and calls an election if it
   * was the leader.
   */
  function giveUp(state: State, node: NodeId, ctx: Ctx): void {
    include(state.suspected, node);
    const lost = state.handed.filter(({ to }) => to === node);
    state.handed = state.handed.filter(({ to }) => to !== node);
    if (state.handed.length === 0) ctx.cancelTimer("receipt");
    for (const { lap } of lost) handOn(state, lap, ctx);
    if (state.leader === node) call(state, ctx);
  }

  function noteAlive(state: State, node: NodeId, ctx: Ctx): void {
    if (!state.suspected.includes(node)) return;
    exclude(state.suspected, node);
    ctx.emit({ type: "heard", node });
  }

  function accept(state: State, from: NodeId, { type, caller, number }: Election | Coordinator, ctx: Ctx): void {
    ctx.send(from, { type: "received", of: type, caller, number });
    noteAlive(state, from, ctx);
    exclude(state.suspected, caller); // The caller was alive a lap ago, so it may have recovered.
  }

  return {
    name: "ring",
    init(self, peers) {
      neighbour(self, peers, 1); // Throws if the ring is invalid.
      return fresh(rankAtFirst(self));
    },
    start: call, // A (re)starting node cannot know the leader.
    receive: {
      election(state, from, lap, ctx) {
        if (!holdsCaller(lap)) return;
        accept(state, from, lap, ctx);
        if (lap.caller === ctx.self) {
          if (state.phase === "calling") announce(state, lap, ctx); // Otherwise a duplicate has completed the lap.
          return;
        }
        // The message has gone around the ring without meeting its caller.
        if (lap.list.some(({ node }) => node === ctx.self)) return;
        takePart(state, "taking part", ctx);
        const number = Math.max(lap.number, state.followed.number + 1);
        handOn(state, { ...lap, number, list: [...lap.list, { node: ctx.self, rank: state.stoodWith }] }, ctx);
      },
      coordinator(state, from, lap, ctx) {
        if (!holdsCaller(lap)) return;
        accept(state, from, lap, ctx);
        // The announcement has gone around the ring, or is a duplicate.
        if (lap.caller === ctx.self || isSame(lap, state.followed)) return;
        const isNews = isAbove(lap, state.followed);
        if (isNews) follow(state, lap, ctx);
        handOn(state, lap, ctx);
        if (isNews && (isWrong(state, lap, ctx) || hasChangedSides(state))) call(state, ctx);
      },
      received(state, from, { of, caller, number }, ctx) {
        noteAlive(state, from, ctx);
        const at = state.handed.findIndex(
          ({ to, lap }) => to === from && lap.type === of && lap.caller === caller && lap.number === number,
        );
        if (at < 0) return; // Too late: the message has been sent to a different node.
        state.handed.splice(at, 1);
        if (state.handed.length === 0) ctx.cancelTimer("receipt");
        else ctx.setTimer("receipt", receiptMs); // Wait for the receipts for messages that were forwarded later.
      },
    },
    timeout: {
      receipt(state, ctx) {
        const silent = state.handed[0]?.to;
        if (silent === undefined) return;
        ctx.emit({ type: "suspected", node: silent });
        giveUp(state, silent, ctx);
        if (state.handed.length > 0) ctx.setTimer("receipt", receiptMs);
      },
      lap: call, // The awaited lap is lost, whether this node or a different one started it.
    },
    command: {
      call(state, _command, ctx) {
        if (state.phase !== "calling") call(state, ctx); // Otherwise this node is already calling an election.
      },
      suspect(state, { node }, ctx) {
        if (ctx.peers.includes(node)) giveUp(state, node, ctx);
      },
      restore(state, { node }, ctx) {
        exclude(state.suspected, node);
        if (state.leader === null || state.members.includes(node)) return;
        // A disconnected part of the ring is back. Both the leader and the restored node's predecessor notice this.
        if (state.leader === ctx.self || nextOf(state, ctx) === node) call(state, ctx);
      },
      rank(state, { rank }) {
        state.rank = rank;
      },
      resign(state, _command, ctx) {
        state.resigned = true;
        if (state.leader === ctx.self) call(state, ctx); // If an election is in progress, the node waits until it ends.
      },
      stand(state, _command, ctx) {
        state.resigned = false;
        if (state.leader !== null) call(state, ctx);
      },
    },
    ...declared(),
    view: (state, self) => ({ role: roleOf(state, self), leader: state.leader }),
  };

  function nextOf(state: State, ctx: Ctx): NodeId | undefined {
    return ctx.peers
      .map((_, i) => neighbour(ctx.self, ctx.peers, i + 1))
      .find((node) => !state.suspected.includes(node));
  }
}

const fresh = (rank: number): State => ({
  phase: "new",
  leader: null,
  members: [],
  followed: { number: 0, caller: 0 },
  rank,
  stoodWith: rank,
  resigned: false,
  suspected: [],
  handed: [],
});

const shapes: Protocol<ExtendedRing>["shapes"] = {
  message: {
    election: { caller: natural, number: natural, list: list(rankedShape, 1_000) },
    coordinator: { caller: natural, number: natural, list: list(rankedShape, 1_000) },
    received: { of: oneOf("election", "coordinator"), caller: natural, number: natural },
  },
  command: {
    call: {},
    suspect: { node: natural },
    restore: { node: natural },
    rank: { rank: real },
    resign: {},
    stand: {},
  },
};

const assumes = [
  "crash-recovery nodes",
  "reliable links",
  "bounded delay: T = 2·T_max + T_process exceeds a round trip",
  "all nodes agree on the ring",
];

const costs: Cost[] = [
  { when: "one election, receipts not counted", messages: (nodes) => 2 * nodes },
  { when: "two concurrent elections, receipts not counted", messages: (nodes) => 4 * nodes },
  { when: "the leader resigns, receipts not counted", messages: (nodes) => 2 * nodes },
];

const properties: Property<ExtendedRing>[] = [
  {
    name: "E1 safety",
    claim: "when idle, no node follows an alive node other than the one with the highest rank",
    when: "quiescent",
    pendingTimers: ["receipt", "lap"],
    holds({ alive, state }) {
      const highest = highestOf(alive.map((node) => ({ node, rank: state(node).stoodWith })));
      return alive.every((node) => {
        const { leader } = state(node);
        return leader === null || !alive.includes(leader) || leader === highest?.node;
      });
    },
  },
  {
    name: "E1 eventually",
    claim: "eventually, every alive node that took part in an election follows the alive node with the highest rank",
    when: "eventually",
    holds({ alive, state }) {
      const highest = highestOf(alive.map((node) => ({ node, rank: state(node).stoodWith })))?.node;
      return alive.every((node) => state(node).phase === "new" || state(node).leader === highest);
    },
  },
  {
    name: "E2 liveness",
    claim: "when idle, every alive node that took part in an election has a leader",
    when: "quiescent",
    pendingTimers: ["receipt", "lap"],
    holds: ({ alive, state }) => alive.every((node) => state(node).phase === "new" || state(node).leader !== null),
  },
  {
    name: "E2 termination",
    claim: "every election terminates",
    when: "leadsTo",
    given: ({ state }, node) => isElecting(state(node)),
    holds: ({ state }, node) => !isElecting(state(node)),
  },
];

const isElecting = ({ phase }: State): boolean => phase === "calling" || phase === "taking part";

const declared = (): Pick<Protocol<ExtendedRing>, "shapes" | "source" | "assumes" | "properties" | "costs"> => ({
  shapes,
  source: "Tanenbaum & van Steen, Distributed Systems, §6.5.1",
  assumes,
  properties,
  costs,
});

/**
 * Whether the caller is in the lap's list. Every lap starts with its caller in the list, and no node suspects itself.
 * Only a Byzantine node sends a list without its caller.
 */
const holdsCaller = ({ caller, list: members }: Lap): boolean => members.some(({ node }) => node === caller);

type Place = { number: number; caller: NodeId };
const isSame = (a: Place, b: Place): boolean => a.number === b.number && a.caller === b.caller;
const isAbove = (a: Place, b: Place): boolean => a.number > b.number || (a.number === b.number && a.caller > b.caller);

/**
 * Whether the result is wrong: this node was skipped although it ranks higher, or this node suspects the elected node.
 */
function isWrong(state: State, { list: members }: Coordinator, ctx: Ctx): boolean {
  const leader = highestOf(members) as Ranked;
  const wasSkipped = members.every(({ node }) => node !== ctx.self);
  const own = { node: ctx.self, rank: state.stoodWith };
  return (wasSkipped && outranks(own, leader)) || state.suspected.includes(leader.node);
}

function roleOf({ phase, leader, resigned }: State, self: NodeId): string {
  if (isElecting({ phase } as State)) return phase;
  if (leader === null) return phase;
  if (resigned && leader !== self) return "resigned";
  return leader === self ? "leader" : "follower";
}
