/**
 * Heartbeat failure detector: a node that has been silent for too long is suspected, and is restored once a message
 * from it arrives. Chandra & Toueg, "Unreliable Failure Detectors for Reliable Distributed Systems", JACM 1996, §5
 * (◇P).
 *
 * Assumes   crash-recovery nodes; partial synchrony: after some unknown time, delays have an unknown bound, which
 *           `maxMisses` heartbeats exceed.
 * Safety    eventual strong accuracy: a suspicion of a live node is revoked when the node's next message arrives, and
 *           raises the tolerance for that node, so that it is not suspected forever.
 * Liveness  strong completeness: a crashed node is suspected by every live node after at most `maxMisses` + 1
 *           heartbeats.
 * Cost      N(N − 1) messages per heartbeat.
 *
 * Time is counted in the node's own heartbeats, not read from a clock. A node that resumes after a pause counts at most
 * one missed heartbeat per peer, so it does not suspect all nodes at once.
 */
import { entriesIn, type PerNode } from "../../core/per-node.ts";
import type { Context, NodeId, Protocol } from "../../core/protocol.ts";
import { natural } from "../../core/shape.ts";
import { count, type OptionsOf, optionTable } from "../options.ts";
import type { WireTable } from "../system.ts";

/** Returns the wires from the detector to a part that accepts `suspect` and `restore`. */
export const watching = (part: string): WireTable => ({
  detector: {
    suspected: ({ node }, give) => give(part, { type: "suspect", node }),
    restored: ({ node }, give) => give(part, { type: "restore", node }),
  },
});

/** Vocabulary of the heartbeat failure detector. */
export type Heartbeat = {
  state: { beat: number; peers: PerNode<Watch> };
  message:
    | { type: "alive"; beat: number }
    | /** The sender stops in an orderly way, so its heartbeats need not be awaited. */ { type: "farewell" };
  timer: "beat";
  command: /** Reports evidence from elsewhere that the node has crashed. The node's next message restores it. */
    | { type: "suspect"; node: NodeId }
    /** Reports evidence from elsewhere that the node is alive, which counts as a heartbeat. */
    | { type: "hear"; node: NodeId }
    /** Announces that this node is about to stop. */
    | { type: "leave" };
  event: { type: "suspected"; node: NodeId } | { type: "restored"; node: NodeId };
};

/** A node's knowledge of a peer. Up to `tolerated` misses raise no suspicion. `lastBeat` is the peer's own count. */
interface Watch {
  status: "trusted" | "suspected";
  missed: number;
  tolerated: number;
  lastBeat: number;
  calmBeats: number;
}

/**
 * The detector's options. With the defaults, a crash is suspected within 400 ms, or within 700 ms once false suspicions
 * have raised the tolerance to `maxMisses`.
 */
const heartbeatOptions = optionTable("heartbeat", {
  intervalMs: count(100, "the heartbeat interval"),
  minMisses: count(3, "the initial number of consecutive heartbeats that may be missed"),
  maxMisses: count(
    6,
    "the maximum for that number, which grows with false suspicions; if equal to `minMisses`, the timeout is fixed",
  ),
  calmBeats: count(100, "after this many heartbeats without a miss, the tolerated number decreases by one"),
});

/** Options of `heartbeat()`. */
export type HeartbeatOptions = OptionsOf<typeof heartbeatOptions>;

type State = Heartbeat["state"];
type Ctx = Context<Heartbeat>;

/** Creates the heartbeat failure detector. @throws UsageError if an option is unknown or out of range. */
export function heartbeat(given?: Partial<HeartbeatOptions>): Protocol<Heartbeat> {
  const options = heartbeatOptions.settle(given);
  const maxMisses = Math.max(options.minMisses, options.maxMisses);

  function beat(state: State, ctx: Ctx): void {
    state.beat += 1;
    ctx.broadcast({ type: "alive", beat: state.beat });
    ctx.setTimer("beat", options.intervalMs);
  }

  function suspect(peer: Watch, node: NodeId, ctx: Ctx): void {
    if (peer.status === "suspected") return;
    peer.status = "suspected";
    ctx.emit({ type: "suspected", node });
  }

  return {
    name: "heartbeat",
    init: (_self, peers) => ({ beat: 0, peers: Object.fromEntries(peers.map((node) => [node, unheard()])) }),
    start: beat,
    receive: {
      alive(state, from, message, ctx) {
        const peer = state.peers[from];
        if (peer === undefined) return; // This node was started without that member.
        if (peer.status === "suspected") {
          // The same incarnation is still counting, so the suspicion was a mistake. A new incarnation starts at 1.
          const mistaken = message.beat > peer.lastBeat && peer.lastBeat > 0;
          if (mistaken) peer.tolerated = Math.min(peer.tolerated + 1, maxMisses);
          peer.status = "trusted";
          ctx.emit({ type: "restored", node: from });
        }
        peer.missed = 0;
        peer.lastBeat = message.beat;
      },
      farewell(state, from, _message, ctx) {
        const peer = state.peers[from];
        if (peer === undefined) return;
        peer.lastBeat = 0; // If the node returns, it is a new incarnation.
        suspect(peer, from, ctx);
      },
    },
    timeout: {
      beat(state, ctx) {
        beat(state, ctx);
        for (const node of ctx.peers) {
          const peer = state.peers[node] as Watch;
          relax(peer);
          peer.missed += 1;
          if (peer.missed > peer.tolerated) suspect(peer, node, ctx);
        }
      },
    },
    command: {
      suspect(state, { node }, ctx) {
        const peer = state.peers[node];
        if (peer !== undefined) suspect(peer, node, ctx);
      },
      hear(state, { node }, ctx) {
        const peer = state.peers[node];
        if (peer === undefined) return;
        peer.missed = 0;
        if (peer.status === "trusted") return;
        peer.status = "trusted";
        ctx.emit({ type: "restored", node });
      },
      leave(_state, _command, ctx) {
        ctx.cancelTimer("beat");
        ctx.broadcast({ type: "farewell" });
      },
    },
    shapes: {
      message: { alive: { beat: natural }, farewell: {} },
      command: { suspect: { node: natural }, hear: { node: natural }, leave: {} },
    },
    source: "Chandra & Toueg, JACM 1996, §5",
    assumes: ["crash-recovery nodes", "partial synchrony: delays are eventually bounded"],
    properties: [
      {
        name: "strong completeness",
        claim: "eventually, every live node suspects every crashed node",
        when: "eventually",
        holds: ({ alive, state }) =>
          alive.every((node) =>
            entriesIn(state(node).peers).every(([peer, { status }]) => alive.includes(peer) || status === "suspected"),
          ),
      },
      {
        name: "eventual strong accuracy",
        claim: "eventually, no live node suspects another live node",
        when: "eventually",
        holds: ({ alive, state }) =>
          alive.every((node) =>
            entriesIn(state(node).peers).every(([peer, { status }]) => !alive.includes(peer) || status === "trusted"),
          ),
      },
    ],
    costs: [{ when: "one heartbeat of every node", messages: (nodes) => nodes * (nodes - 1) }],
    view: (state) => ({
      role: Object.values(state.peers).some((peer) => peer.status === "suspected") ? "suspecting" : "calm",
    }),
  };

  function unheard(): Watch {
    return { status: "trusted", missed: 0, tolerated: options.minMisses, lastBeat: 0, calmBeats: 0 };
  }

  /** Lowers the tolerance by one miss after a long stretch without misses. */
  function relax(peer: Watch): void {
    peer.calmBeats = peer.missed === 0 ? peer.calmBeats + 1 : 0;
    if (peer.calmBeats < options.calmBeats || peer.tolerated === options.minMisses) return;
    peer.calmBeats = 0;
    peer.tolerated -= 1;
  }
}
