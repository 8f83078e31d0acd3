/**
 * Recreates figure 16 of the Raft paper, with five servers. The leader sends heartbeats to all servers and crashes at
 * some time before the next ones. The other servers have logs of different lengths, so not all of them can win. The
 * figure shows the time without a leader. Ongaro & Ousterhout, USENIX ATC 2014 (extended version), §9.3.
 */
import type { NodeId } from "../../src/core/protocol.ts";
import { type Random, random } from "../../src/core/random.ts";
import { type Raft, raft } from "../../src/protocols/consensus/raft/raft.ts";
import { simulation } from "../../src/sim/simulation.ts";

/** The range of election timeouts. */
interface Timeouts {
  readonly minMs: number;
  readonly maxMs: number;
}

const LEADER: NodeId = 0;
const FOLLOWERS: readonly NodeId[] = [1, 2, 3, 4];
/** The message delay, fitted to the paper's figures: mainly to the mean for 12–24 ms and the median for 150–155 ms. */
export const DELAY_MS = [1.5, 6] as const;
/** The maximum duration of a trial. */
const PATIENCE_MS = 20_000;

function downtimeMs({ minMs, maxMs }: Timeouts, seed: number): number {
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
    delayMs: DELAY_MS,
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
    // These are the leader's last messages before it crashes.
    inFlight: FOLLOWERS.map((to) => ({ id: `${LEADER}-${to}`, from: LEADER, to, message: lastHeartbeat })),
  });
  for (const follower of FOLLOWERS) sim.start(follower);
  while (ledAt === null && sim.now < PATIENCE_MS) sim.step();
  return (ledAt ?? PATIENCE_MS) - crashedAt;
}

const TERM = 1;
const lastHeartbeat: Raft["message"] = { type: "heartbeat", term: TERM, round: 1, commitIndex: 0 };

/**
 * Returns the journal of a server that has voted for the leader and has this many more entries than the shortest log.
 */
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

const ofMs = (minMs: number, maxMs: number): Timeouts => ({ minMs, maxMs });

/** Timeouts with increasing randomness. */
const spreads = [150, 151, 155, 175, 200, 300].map((maxMs) => ofMs(150, maxMs));
/** Timeouts of decreasing length. */
const scales = [ofMs(12, 24), ofMs(25, 50), ofMs(50, 100), ofMs(100, 200)];

interface Line {
  readonly timeouts: string;
  readonly median: number;
  readonly mean: number;
  readonly worst: number;
}

export const TRIALS = 1_000;
/** Without randomness, the number of trials is divided by this, as in the paper. */
const FEWER = 10;

function line(timeouts: Timeouts): Line {
  const { minMs, maxMs } = timeouts;
  const trials = minMs === maxMs ? TRIALS / FEWER : TRIALS;
  const downtimes = Array.from({ length: trials }, (_, seed) => downtimeMs(timeouts, seed)).sort((a, b) => a - b);
  return {
    timeouts: `${minMs}–${maxMs} ms`,
    median: downtimes[trials >> 1] as number,
    mean: downtimes.reduce((sum, each) => sum + each, 0) / trials,
    worst: downtimes.at(-1) as number,
  };
}

/** The figures in the paper's text. */
export const published: readonly {
  readonly timeouts: string;
  readonly what: "median" | "mean" | "worst";
  readonly ms: number;
}[] = [
  { timeouts: "150–155 ms", what: "median", ms: 287 },
  { timeouts: "150–200 ms", what: "worst", ms: 513 },
  { timeouts: "12–24 ms", what: "mean", ms: 35 },
  { timeouts: "12–24 ms", what: "worst", ms: 152 },
];

/** The largest relative deviation from the paper's figures. */
const MARGIN = 0.15;

/** Returns all lines of the figure. @throws Error if one deviates from the paper's by more than the margin */
export function figure16(): Line[] {
  const lines = [...scales, ...spreads].map(line);
  for (const { timeouts, what, ms } of published) {
    const found = lines.find((each) => each.timeouts === timeouts)?.[what] ?? 0;
    if (Math.abs(found - ms) / ms >= MARGIN)
      throw new Error(`expected the ${what} of ${timeouts} to be within 15 % of the paper's ${ms} ms, got ${found}`);
  }
  return lines;
}
