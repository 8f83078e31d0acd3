/**
 * Skeleton algorithm: in one sentence, which nodes are suspected and why.
 * The paper, with year and section.
 *
 * Assumes   crash-recovery nodes; bounded delay: a beat takes less than `maxMisses` intervals.
 * Safety    eventual strong accuracy: an alive node is not suspected forever.
 * Liveness  strong completeness: a crashed node is suspected by every alive node.
 * Cost      N(N − 1) messages per beat.
 *
 * Placeholder until you write the algorithm: heartbeats with a fixed timeout.
 */
import type { Context, NodeId, Protocol } from "../../src/core/protocol.ts";
import { count, type OptionsOf, optionTable } from "../../src/protocols/options.ts";

/** The types of the skeleton algorithm: its state, messages, timers and events. */
export type SkeletonAlgorithm = {
  /** Consecutive missed beats, by peer. */
  state: { missed: Record<NodeId, number> };
  message: { type: "alive" };
  timer: "beat";
  event: { type: "suspected"; node: NodeId } | { type: "restored"; node: NodeId };
};

const skeletonAlgorithmOptions = optionTable("skeleton-algorithm", {
  intervalMs: count(100, "the heartbeat interval"),
  maxMisses: count(3, "a node that misses more beats in a row is suspected"),
});

/** The options of `skeletonAlgorithm()`. */
export type SkeletonAlgorithmOptions = OptionsOf<typeof skeletonAlgorithmOptions>;

type State = SkeletonAlgorithm["state"];
type Ctx = Context<SkeletonAlgorithm>;

/**
 * Detects crashed nodes.
 *
 * @throws UsageError if an option is unknown or out of range
 */
export function skeletonAlgorithm(given?: Partial<SkeletonAlgorithmOptions>): Protocol<SkeletonAlgorithm> {
  const { intervalMs, maxMisses } = skeletonAlgorithmOptions.settle(given);

  const isSuspected = (state: State, node: NodeId): boolean => (state.missed[node] ?? 0) > maxMisses;

  function beat(_state: State, ctx: Ctx): void {
    ctx.broadcast({ type: "alive" });
    ctx.setTimer("beat", intervalMs);
  }

  return {
    name: "skeleton-algorithm",
    init: (_self, peers) => ({ missed: Object.fromEntries(peers.map((node) => [node, 0])) }),
    start: beat,
    receive: {
      alive(state, from, _message, ctx) {
        if (isSuspected(state, from)) ctx.emit({ type: "restored", node: from });
        state.missed[from] = 0;
      },
    },
    timeout: {
      beat(state, ctx) {
        beat(state, ctx);
        for (const node of ctx.peers) {
          if (isSuspected(state, node)) continue;
          state.missed[node] = (state.missed[node] ?? 0) + 1;
          if (isSuspected(state, node)) ctx.emit({ type: "suspected", node });
        }
      },
    },
    shapes: { message: { alive: {} } },
    source: "the paper, with year and section",
    assumes: ["crash-recovery nodes", "bounded delay"],
    properties: [
      {
        name: "strong completeness",
        claim: "every alive node eventually suspects every crashed node",
        when: "eventually",
        holds: ({ nodes, alive, state }) =>
          alive.every((node) =>
            nodes.every((peer) => peer === node || alive.includes(peer) || isSuspected(state(node), peer)),
          ),
      },
      {
        name: "eventual strong accuracy",
        claim: "eventually no alive node suspects another alive node",
        when: "eventually",
        holds: ({ alive, state }) => alive.every((node) => alive.every((peer) => !isSuspected(state(node), peer))),
      },
    ],
    costs: [{ when: "one heartbeat of every node", messages: (nodes) => nodes * (nodes - 1) }],
    view: ({ missed }) => ({ role: Object.values(missed).some((count) => count > maxMisses) ? "suspecting" : "calm" }),
  };
}
