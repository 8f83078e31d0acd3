/**
 * Bully election: the alive node with the highest id becomes coordinator.
 * García-Molina, "Elections in a Distributed Computing System", IEEE ToC 1982; terms of Coulouris et al. §15.3.
 *
 * Assumes   crash-recovery nodes; reliable links; bounded delay: T = 2·T_max + T_process exceeds a round trip.
 * Safety    E1: when idle, no node follows an alive node other than the highest. Eventually all alive participants
 *           follow the highest node, if every crash is reported to all nodes (`suspect`) after the crashed node's last
 *           message has arrived. If a message arrives after the report, its receiver may follow the crashed node
 *           forever.
 * Liveness  E2: every election ends, and then every alive node that took part has a leader.
 * Cost      N − 2 messages at best (the second-highest node notices the crash and just announces itself); N² − N − 1
 *           when the lowest node calls the election and the highest has crashed.
 *
 * `extended-bully.ts` adds resignation, ranks and self-correction. Real processes run that one.
 */
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { natural } from "../../../core/shape.ts";
import { exclude, include } from "../../node-set.ts";
import { type OptionsOf, optionTable, positive } from "../../options.ts";
import { bullyCosts, bullyProperties, bullyRole, isElecting } from "./properties.ts";

/** Vocabulary of the bully election. */
export type Bully = {
  state: {
    /** `new`: the node has not taken part in an election yet. */
    phase: "new" | "idle" | "campaigning" | "deferring";
    leader: NodeId | null;
    /** In ascending order. */
    suspected: NodeId[];
  };
  message: { type: "election" } | { type: "answer" } | { type: "coordinator" };
  timer: "answer" | "coordinator";
  command:
    | { type: "suspect"; node: NodeId }
    /** Calls an election, even if the node has a leader. */
    | { type: "call" };
  event: { type: "elected"; leader: NodeId };
};

/**
 * Options for delays. With the defaults, T is 180 ms, which is generous for a single network segment and short enough
 * for failover in well under a second.
 */
export const delayOptions = {
  maxDelayMs: positive(60, "T_max, the maximum message delay"),
  processMs: positive(60, "T_process, the maximum time that a node takes to handle a message"),
};

const bullyOptions = optionTable("bully", delayOptions);

/** Options for `bully()`. */
export type BullyOptions = OptionsOf<typeof bullyOptions>;

/** Returns the timeouts derived from the delays: T and T′ in the textbook. */
export function bullyTimeouts({ maxDelayMs, processMs }: BullyOptions): { answerMs: number; coordinatorMs: number } {
  /** T: every alive node answers within this time. */
  const answerMs = 2 * maxDelayMs + processMs;
  // A node that answers calls an election itself: it waits for T and then announces itself, and its messages take time
  // to arrive.
  return { answerMs, coordinatorMs: 2 * answerMs };
}

type State = Bully["state"];
type Ctx = Context<Bully>;

/** Creates the textbook bully election. @throws UsageError if an option is unknown or out of range. */
export function bully(given?: Partial<BullyOptions>): Protocol<Bully> {
  const { answerMs, coordinatorMs } = bullyTimeouts(bullyOptions.settle(given));

  function startElection(state: State, ctx: Ctx): void {
    // This node knows that it is the highest, so it needs no election.
    if (isHighest(state, ctx)) return becomeCoordinator(state, ctx);
    state.phase = "campaigning";
    state.leader = null;
    // The message also goes to suspected nodes.
    for (const rival of above(ctx.self, ctx)) ctx.send(rival, { type: "election" });
    ctx.cancelTimer("coordinator");
    ctx.setTimer("answer", answerMs);
  }

  function becomeCoordinator(state: State, ctx: Ctx): void {
    for (const peer of ctx.peers) if (peer < ctx.self) ctx.send(peer, { type: "coordinator" });
    follow(ctx.self, state, ctx);
  }

  /** Ends the election at this node, which then follows the leader. */
  function follow(leader: NodeId, state: State, ctx: Ctx): void {
    const isNews = leader !== state.leader;
    state.phase = "idle";
    state.leader = leader;
    ctx.cancelTimer("answer");
    ctx.cancelTimer("coordinator");
    if (isNews) ctx.emit({ type: "elected", leader });
    for (const silent of above(leader, ctx)) include(state.suspected, silent); // The leader is the highest alive node.
  }

  return {
    name: "bully",
    init: () => ({ phase: "new", leader: null, suspected: [] }),
    start: startElection, // A (re)starting node cannot know the leader, so it bullies.
    receive: {
      election(state, from, _message, ctx) {
        exclude(state.suspected, from);
        ctx.send(from, { type: "answer" });
        if (!isElecting(state)) startElection(state, ctx);
      },
      answer(state, from, _message, ctx) {
        exclude(state.suspected, from);
        if (state.phase !== "campaigning") return; // A late answer: this election is over.
        state.phase = "deferring";
        ctx.cancelTimer("answer");
        ctx.setTimer("coordinator", coordinatorMs);
      },
      coordinator(state, from, _message, ctx) {
        exclude(state.suspected, from);
        follow(from, state, ctx);
      },
    },
    timeout: {
      answer: becomeCoordinator, // No higher node is alive.
      coordinator: startElection, // The node that answered crashed before it announced itself.
    },
    command: {
      suspect(state, { node }, ctx) {
        if (!ctx.peers.includes(node)) return; // The node is not a member.
        include(state.suspected, node);
        if (node === state.leader || (isElecting(state) && isHighest(state, ctx))) startElection(state, ctx);
      },
      call: (state, _command, ctx) => startElection(state, ctx),
    },
    shapes: {
      message: { election: {}, answer: {}, coordinator: {} },
      command: { suspect: { node: natural }, call: {} },
    },
    source: "García-Molina, IEEE ToC 1982; Coulouris et al. §15.3",
    assumes: ["crash-recovery nodes", "reliable links", "bounded delay: T = 2·T_max + T_process exceeds a round trip"],
    properties: bullyProperties<Bully>(["answer", "coordinator"], {
      of: ({ alive }) => alive.at(-1) ?? null,
      words: "the highest alive node",
    }),
    costs: bullyCosts,
    view: (state, self) => ({ role: bullyRole(state, self), leader: state.leader }),
  };
}

const above = (node: NodeId, { peers }: Ctx): NodeId[] => peers.filter((peer) => peer > node);

const isHighest = ({ suspected }: State, ctx: Ctx): boolean =>
  above(ctx.self, ctx).every((rival) => suspected.includes(rival));
