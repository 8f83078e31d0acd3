/**
 * One trial of the Raft paper's figure 16: five servers, the leader sends heartbeats to all and crashes at some time before its
 * next ones. The others have logs of different lengths, so not all of them can win. How long is nobody the leader?
 * Ongaro & Ousterhout, USENIX ATC 2014 (extended version), §9.3.
 */
import type { NodeId } from "../../src/core/protocol.ts";
import { type Random, random } from "../../src/core/random.ts";
import { type Raft, raft } from "../../src/protocols/consensus/raft/raft.ts";
import type { Delay } from "../../src/sim/index.ts";
import { simulation } from "../../src/sim/simulation.ts";

/** Election time-outs are drawn from here. */
export interface Timeouts {
  readonly minMs: number;
  readonly maxMs: number;
}

const LEADER: NodeId = 0;
const FOLLOWERS: readonly NodeId[] = [1, 2, 3, 4];
/** How long a message travels: fitted to the paper's figures, first of all the mean for 12–24 ms and the median for 150–155 ms. */
export const DELAY_MS = [1.5, 6] as const;
/** Nobody waits longer for a leader. */
const PATIENCE_MS = 20_000;

export function downtimeMs({ minMs, maxMs }: Timeouts, seed: number, delayMs: Delay = DELAY_MS): number {
  const chance = random(seed).stream("trial");
  const heartbeatMs = minMs / 2;
  const crashedAt = chance.between(0, heartbeatMs);
  let ledAt: number | null = null;
  const protocol = raft({
    minElectionMs: minMs,
    maxElectionMs: maxMs,
    heartbeatMs,
    preVote: false,
    checkQuorum: false,
  });
  const sim = simulation<Raft>({
    protocol: { ...protocol, properties: [] },
    nodes: [LEADER, ...FOLLOWERS],
    seed,
    delayMs,
    onEvent(at, node, event) {
      if (event.type === "led" && event.leader === node) ledAt ??= at;
    },
  });
  const byLength = shuffled(FOLLOWERS, chance);
  sim.adopt({
    at: 0,
    nodes: [LEADER, ...FOLLOWERS].map((id) => ({
      id,
      state: null,
      timers: [],
      journal: journalOf(byLength.indexOf(id)),
    })),
    // The last that is heard of the leader, which does nothing more before it crashes.
    inFlight: FOLLOWERS.map((to) => ({ id: `${LEADER}-${to}`, from: LEADER, to, message: lastHeartbeat })),
  });
  for (const follower of FOLLOWERS) sim.start(follower);
  while (ledAt === null && sim.now < PATIENCE_MS) sim.step();
  return (ledAt ?? PATIENCE_MS) - crashedAt;
}

const TERM = 1;
const lastHeartbeat: Raft["message"] = { type: "heartbeat", term: TERM, round: 1, commitIndex: 0 };

/** Of a server that has voted for the leader and has so many entries more than the one with the shortest log. */
function journalOf(more: number): Raft["record"][] {
  const entries = Array.from({ length: 1 + Math.max(0, more) }, () => ({ type: "noop" as const, term: TERM }));
  return [
    { type: "voted", term: TERM, votedFor: LEADER },
    { type: "appended", entries },
  ];
}

function shuffled(nodes: readonly NodeId[], chance: Random): NodeId[] {
  const all = [...nodes];
  for (let i = all.length - 1; i > 0; i--) {
    const j = chance.below(i + 1);
    [all[i], all[j]] = [all[j] as NodeId, all[i] as NodeId];
  }
  return all;
}
