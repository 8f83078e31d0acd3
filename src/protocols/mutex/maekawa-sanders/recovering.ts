/**
 * Maekawa's algorithm with Sanders' correction, extended to handle crashes and recoveries. Processes and `join()` run
 * this variant, with suspicions from a failure detector.
 *
 * A node that suspects one of its voters asks all unsuspected nodes for their votes instead. Every node is a member of
 * its own voting set, so the unsuspected nodes intersect the voting set of every other unsuspected node. A voter takes
 * its vote back from a suspected node. It then does not vote for another node until all unsuspected nodes have sent it
 * their highest tokens, which costs 2(N − 2) messages. With `rejoins`, a restarted node neither requests entry nor
 * votes until all other nodes have also reported whether it had voted for them, which costs 2(N − 1) messages.
 *
 * With these rules, ME1 and ME2 hold and tokens increase, as long as no live node is suspected and at most one node is
 * down at a time. A wrong suspicion, for example in a partition, can let two nodes in.
 */
import { tick } from "../../../core/clocks.ts";
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { boolean, natural, nullable } from "../../../core/shape.ts";
import { exclude, include } from "../../node-set.ts";
import { flag, type OptionsOf, optionTable } from "../../options.ts";
import { mutexProperties } from "../family/workload.ts";
import { electorates } from "../parts/voting-sets.ts";
import { type MaekawaSanders, maekawaSanders, sandersOptions, votingRules } from "./maekawa-sanders.ts";

/** Vocabulary of Maekawa–Sanders with recovery. */
export type RecoveringMaekawaSanders = {
  state: MaekawaSanders["state"] & {
    /** The suspected nodes, in ascending order. */
    suspected: NodeId[];
    /**
     * Whether the node has just started or has lost track of its vote, and is waiting for a welcome from the nodes in
     * `unmet`.
     */
    joining: boolean;
    /** The nodes whose welcome is awaited, in ascending order. */
    unmet: NodeId[];
    /** Whether the node will make a request once it has joined. */
    wishes: boolean;
  };
  message:
    | MaekawaSanders["message"]
    /** Asks for the receiver's pending request. `forgotten`: whether the sender has started without any state. */
    | { type: "hello"; forgotten: boolean }
    /**
     * Replies to a hello. `wanted`: the time of the request that needs the receiver's vote. `voted`: whether the sender
     * has that vote.
     */
    | { type: "welcome"; time: number; token: number; wanted: number | null; voted: boolean };
  command: MaekawaSanders["command"] | { type: "suspect"; node: NodeId } | { type: "restore"; node: NodeId };
  event: MaekawaSanders["event"];
};

const recoveringOptions = optionTable("maekawa-sanders", {
  ...sandersOptions,
  rejoins: flag(false, "whether a node learns all other nodes' requests before it requests entry or votes"),
});

/** Options of `recoveringMaekawaSanders()`. */
export type RecoveringMaekawaSandersOptions = OptionsOf<typeof recoveringOptions>;

type State = RecoveringMaekawaSanders["state"];
type Ctx = Context<RecoveringMaekawaSanders>;

/** Casts the context for the published algorithm. Its messages and events are a subset of this protocol's. */
const asPublished = (ctx: Ctx): Context<MaekawaSanders> => ctx as unknown as Context<MaekawaSanders>;

const votersOf = electorates();

/** Creates Maekawa–Sanders with recovery. @throws UsageError if an option is unknown or out of range. */
export function recoveringMaekawaSanders(
  given?: Partial<RecoveringMaekawaSandersOptions>,
): Protocol<RecoveringMaekawaSanders> {
  const { tellsDisplaced, rejoins } = recoveringOptions.settle(given);
  const { init, receive, shapes, ...published } = maekawaSanders({ tellsDisplaced });
  const rules = votingRules(tellsDisplaced, (state) => !(state as State).joining);

  function consider(time: number, node: NodeId, state: State, ctx: Ctx): void {
    if (state.suspected.includes(node)) return; // If the node is restored, this one asks for its request.
    rules.consider({ time, node }, state, asPublished(ctx));
  }

  /** Drops requests from a stopped or restarted node, because they are void. */
  function letGo(node: NodeId, state: State, ctx: Ctx): void {
    const { ballot } = state;
    ballot.queue = ballot.queue.filter((waiting) => waiting.node !== node);
    if (ballot.candidate?.node !== node) return;
    ballot.candidate = null;
    askForTokens(state, ctx);
  }

  /** Replaces the voters after one of them is suspected, and also asks the other unsuspected nodes. */
  function askOthers(state: State, ctx: Ctx): void {
    const asked = state.voters;
    state.voters = electorate(state, ctx);
    for (const set of ["votes", "failedAt", "inquiries"] as const)
      state[set] = state[set].filter((voter) => state.voters.includes(voter));
    for (const voter of state.voters)
      if (!asked.includes(voter)) rules.tell(voter, { type: "request", time: state.time }, state, asPublished(ctx));
    rules.enterIfAllVoted(state, asPublished(ctx));
  }

  function joinIfMet(state: State, ctx: Ctx): void {
    if (!state.joining || !state.unmet.every((node) => state.suspected.includes(node))) return;
    const { queue } = state.ballot;
    state.joining = false;
    state.token += 1; // A node that crashed inside may have used this token.
    state.ballot.queue = [];
    for (const { time, node } of queue) consider(time, node, state, ctx);
    if (!state.wishes) return;
    state.wishes = false;
    rules.ask(electorate(state, ctx), state, asPublished(ctx));
  }

  const hear = (state: State, from: NodeId, message: MaekawaSanders["message"], ctx: Ctx): void =>
    rules.hear(state, from, message, asPublished(ctx));

  return {
    ...published,
    init: (self, peers) => ({ ...init(self, peers), suspected: [], joining: false, unmet: [], wishes: false }),
    start(state, ctx) {
      if (!rejoins || ctx.peers.length === 0) return;
      Object.assign(state, { joining: true, unmet: [...ctx.peers] });
      ctx.broadcast({ type: "hello", forgotten: true });
    },
    receive: {
      ...{ vote: hear, failed: hear, inquire: hear, yield: hear, release: hear },
      request(state, from, { time }, ctx) {
        state.clock = tick(state.clock, time);
        consider(time, from, state, ctx);
      },
      hello(state, from, { forgotten }, ctx) {
        if (forgotten) {
          for (const set of ["suspected", "unmet", "failedAt", "inquiries"] as const) exclude(state[set], from);
          letGo(from, state, ctx);
        }
        const { clock, token, section, voters, votes } = state;
        const wanted = section !== "released" && voters.includes(from) ? state.time : null;
        ctx.send(from, { type: "welcome", time: clock, token, wanted, voted: votes.includes(from) });
        joinIfMet(state, ctx);
      },
      welcome(state, from, { time, token, wanted, voted }, ctx) {
        state.clock = tick(state.clock, time);
        state.token = Math.max(state.token, token);
        exclude(state.unmet, from);
        if (wanted !== null && !voted) consider(wanted, from, state, ctx);
        else if (wanted !== null) state.ballot.candidate ??= { time: wanted, node: from };
        joinIfMet(state, ctx);
      },
    },
    command: {
      enter(state, _command, ctx) {
        if (state.section !== "released") return; // The node is already waiting or inside.
        if (state.joining) state.wishes = true;
        else rules.ask(electorate(state, ctx), state, asPublished(ctx));
      },
      exit(state, _command, ctx) {
        if (state.section !== "held") return; // The node is not inside.
        const asked = new Set([...state.voters, ...votersOf(ctx.self, ctx.peers)]);
        rules.leave(
          [...asked].sort((a, b) => a - b),
          state,
          asPublished(ctx),
        );
      },
      suspect(state, { node }, ctx) {
        include(state.suspected, node);
        letGo(node, state, ctx);
        if (state.section === "wanted" && state.voters.includes(node)) askOthers(state, ctx);
        joinIfMet(state, ctx);
      },
      restore(state, { node }, ctx) {
        exclude(state.suspected, node);
        ctx.send(node, { type: "hello", forgotten: false }); // This node has dropped the other's requests.
      },
    },
    shapes: {
      message: {
        ...shapes.message,
        hello: { forgotten: boolean },
        welcome: { time: natural, token: natural, wanted: nullable(natural), voted: boolean },
      },
      command: { ...shapes.command, suspect: { node: natural }, restore: { node: natural } },
    },
    properties: mutexProperties(({ section, wishes }) => (wishes ? "wanted" : section)),
  };
}

/** Returns the node's voting set, or all unsuspected nodes if a member of the set is suspected. */
function electorate({ suspected }: State, { self, peers }: Ctx): NodeId[] {
  const voters = votersOf(self, peers);
  if (!voters.some((voter) => suspected.includes(voter))) return voters;
  return [self, ...peers.filter((peer) => !suspected.includes(peer))].sort((a, b) => a - b);
}

/**
 * Asks the live nodes for their tokens. The candidate may have entered with its voters' highest token plus one. This
 * node may not know that token, but the live nodes do.
 */
function askForTokens(state: State, ctx: Ctx): void {
  state.joining = true;
  state.unmet = ctx.peers.filter((peer) => !state.suspected.includes(peer));
  for (const peer of state.unmet) ctx.send(peer, { type: "hello", forgotten: false });
}
