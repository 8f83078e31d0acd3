/**
 * Skeleton algorithm: in one sentence, which node becomes the leader and why.
 * The paper, with year and section, or Coulouris et al. §15.3.
 *
 * Assumes   no crashes; reliable links.
 * Safety    E1: a node that knows a leader knows the highest node.
 * Liveness  E2: every election ends, and then every node knows a leader.
 * Cost      at most N messages: one to the highest node, and N − 1 from it.
 *
 * Placeholder until you write the algorithm: the caller notifies the highest node, which announces itself.
 */
import type { Context, NodeId, Protocol } from "../../src/core/protocol.ts";

/** The types of the skeleton algorithm: its state, messages, commands and events. */
export type SkeletonAlgorithm = {
  state: { phase: "idle" | "campaigning"; leader: NodeId | null };
  message: { type: "election" } | { type: "leader" };
  command: { type: "call" };
  event: { type: "elected"; leader: NodeId };
};

type State = SkeletonAlgorithm["state"];
type Ctx = Context<SkeletonAlgorithm>;

/** Elects one leader among the nodes. */
export function skeletonAlgorithm(): Protocol<SkeletonAlgorithm> {
  function follow(state: State, leader: NodeId, ctx: Ctx): void {
    state.phase = "idle";
    if (state.leader === leader) return; // A repeated announcement.
    state.leader = leader;
    ctx.emit({ type: "elected", leader });
  }

  function becomeLeader(state: State, ctx: Ctx): void {
    follow(state, ctx.self, ctx);
    ctx.broadcast({ type: "leader" });
  }

  return {
    name: "skeleton-algorithm",
    init: () => ({ phase: "idle", leader: null }),
    receive: {
      election: (state, _from, _message, ctx) => becomeLeader(state, ctx),
      leader: (state, from, _message, ctx) => follow(state, from, ctx),
    },
    command: {
      call(state, _command, ctx) {
        if (state.phase === "campaigning") return; // Already called.
        const highest = Math.max(ctx.self, ...ctx.peers);
        if (highest === ctx.self) return becomeLeader(state, ctx);
        state.phase = "campaigning";
        ctx.send(highest, { type: "election" });
      },
    },
    shapes: { message: { election: {}, leader: {} }, command: { call: {} } },
    source: "the paper, with year and section",
    assumes: ["no crashes", "reliable links"],
    properties: [
      {
        name: "E1 safety",
        claim: "a node that knows a leader knows the highest alive node",
        when: "always",
        holds: ({ alive, state }) => alive.every((node) => [null, Math.max(...alive)].includes(state(node).leader)),
      },
      {
        name: "E2 liveness",
        claim: "when the system is quiescent, every node that has called an election knows a leader",
        when: "quiescent",
        holds: ({ alive, state }) => alive.every((node) => state(node).phase === "idle"),
      },
    ],
    costs: [{ when: "one call, by a node other than the highest", messages: (nodes) => nodes }],
    view: ({ phase, leader }, self) => ({ role: leader === self ? "leader" : phase, leader }),
  };
}
