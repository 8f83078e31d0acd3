/**
 * Raft's lease reads in timed exploration, with pre-votes and check-quorum. Nodes 0 and 2 have no link to each other.
 */
import { describe, expect, it } from "vitest";
import { type Exploration, explore } from "../../../src/check/explore.ts";
import type { Context, NodeId, Protocol } from "../../../src/core/protocol.ts";
import { safety } from "../../../src/protocols/consensus/raft/properties.ts";
import { type Raft, raft } from "../../../src/protocols/consensus/raft/raft.ts";
import { changedContext, withContext } from "../../../src/protocols/contexts.ts";
import { ledBy0 } from "../raft-models.ts";
import { reaching } from "../reached.ts";

type Ctx = Context<Raft>;

/** The drift that leases allow for. A lease is 600 ms, and followers keep their promise for 1,000 ms. */
const DRIFT = 0.25;

const withLeases = raft({
  leaseReads: true,
  minElectionMs: 1_000,
  maxElectionMs: 1_100,
  heartbeatMs: 900,
  drift: DRIFT,
  maxBatchEntries: 1,
});

const areCut = (a: NodeId, b: NodeId): boolean => a !== b && a !== 1 && b !== 1;

/** Node 0 leads term 1. No node has received anything for a while, so all timers are about to fire. */
function afterSilence(protocol: Protocol<Raft>): Protocol<Raft> {
  const linked = withContext(protocol, (ctx) =>
    changedContext(ctx, {
      send(to: NodeId, message: Raft["message"]) {
        if (!areCut(ctx.self, to)) ctx.send(to, message);
      },
    }),
  ) as Protocol<Raft>;
  return {
    ...linked,
    init: (self, peers) => ledBy0(protocol.init(self, peers), self, peers),
    start(_state, ctx) {
      ctx.emit({ type: "led", leader: 0, term: 1 });
      if (ctx.self === 0) ctx.setTimer("heartbeat", [100, 300]);
      else ctx.setTimer("election", [100, 200]);
    },
  };
}

/** The seeded bug `promise-ends-with-the-term`: a node that learns of a later term forgets its promise to the leader. */
function forgetful(protocol: Protocol<Raft>): Protocol<Raft> {
  const receive = Object.entries(protocol.receive as unknown as Record<string, Handler>).map(([type, handle]) => [
    type,
    (state: Raft["state"], from: NodeId, message: Raft["message"], ctx: Ctx): void => {
      const { term } = state;
      handle(state, from, message, ctx);
      const { role } = state;
      if (state.term > term && role.is === "follower" && role.leader === null) role.hasHeard = false;
    },
  ]);
  return { ...protocol, receive: Object.fromEntries(receive) };
}
type Handler = (state: Raft["state"], from: NodeId, message: Raft["message"], ctx: Ctx) => void;

interface Bounds {
  readonly drift?: number;
  readonly maxDelayMs?: number;
  readonly maxTimeouts?: number;
}

/** Explores a read at node 0. Runs with more moves than the stale read needs are cut off. */
function reads(protocol: Protocol<Raft>, { drift = 0, maxDelayMs = 200, maxTimeouts = 5 }: Bounds): Exploration<Raft> {
  const found = explore<Raft>({
    protocol: afterSilence(protocol),
    properties: safety,
    nodes: [0, 1, 2],
    network: "bag",
    timers: "timed",
    time: { unitMs: 100, delayMs: [100, maxDelayMs], drift },
    begin: "together",
    maxTimeouts,
    maxDepth: 18,
    asks: (node) => (node === 0 ? [{ type: "read", read: 1 }] : []),
  });
  return reaching(found, "led", "readable", "receive preVote", "receive vote", "receive appended");
}

const outcome = ({ verdict, property, states, path }: Exploration<Raft>) =>
  property === null ? [verdict, states] : [property.name, path.length];

describe("raft: reads by lease, in time", () => {
  it("clocks within the drift: no stale read within 18 steps", { tags: ["long"] }, () => {
    expect(outcome(reads(withLeases, { drift: DRIFT, maxDelayMs: 100 }))).toEqual(["unknown", 21_957]);
  });

  it("exact clocks, delays of up to 200 ms: no stale read within 18 steps", { tags: ["long"] }, () => {
    expect(outcome(reads(withLeases, {}))).toEqual(["unknown", 73_926]);
  });

  it("clocks beyond the drift: another node leads and commits while the lease continues", { tags: ["long"] }, () => {
    const found = reads(withLeases, { drift: 0.6, maxDelayMs: 100, maxTimeouts: 4 });
    expect(outcome(found)).toEqual(["linearizable reads", 17]);
  });

  it("detects a node that forgets its promise in a new term, with exact clocks", { tags: ["long"] }, () => {
    expect(outcome(reads(forgetful(withLeases), {}))).toEqual(["linearizable reads", 18]);
  });
});
