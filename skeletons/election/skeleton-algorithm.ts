/**
 * Skeleton algorithm: in one sentence, who becomes the leader and why.
 * The paper, with year and section, or Coulouris et al. §15.3.
 *
 * Assumes   no crashes; reliable links.
 * Safety    E1: a node that has elected somebody has elected the highest.
 * Liveness  E2: every election ends, and then every node has elected somebody.
 * Cost      at most N messages: one to the highest node, and N − 1 from it.
 *
 * What runs here until the algorithm stands in its place: the highest node is told, and declares itself.
 */
import type { Context, NodeId, Protocol } from "../../src/core/protocol.ts";

export type SkeletonAlgorithm = {
  state: { phase: "idle" | "campaigning"; leader: NodeId | null };
  message: { type: "election" } | { type: "leader" };
  command: { type: "call" };
  event: { type: "elected"; leader: NodeId };
};

type State = SkeletonAlgorithm["state"];
type Ctx = Context<SkeletonAlgorithm>;

export function skeletonAlgorithm(): Protocol<SkeletonAlgorithm> {
  function follow(state: State, leader: NodeId, ctx: Ctx): void {
    state.phase = "idle";
    if (state.leader === leader) return; // It was announced before.
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
        if (state.phase === "campaigning") return; // It has called already.
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
        claim: "a node that has elected somebody has elected the highest alive node",
        when: "always",
        holds: ({ alive, state }) => alive.every((node) => [null, Math.max(...alive)].includes(state(node).leader)),
      },
      {
        name: "E2 liveness",
        claim: "every node that has called an election has elected somebody when nothing is left to happen",
        when: "quiescent",
        holds: ({ alive, state }) => alive.every((node) => state(node).phase === "idle"),
      },
    ],
    costs: [{ when: "a node calls that is not the highest", messages: (nodes) => nodes }],
    view: ({ phase, leader }, self) => ({ role: leader === self ? "leader" : phase, leader }),
  };
}
