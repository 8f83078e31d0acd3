/** Raft alone in the simulator. Tests send commands to it directly and read its logs as text. */
import type { NodeId } from "../../src/core/protocol.ts";
import type { RaftOptions } from "../../src/protocols/consensus/raft/options.ts";
import { type Raft, raft } from "../../src/protocols/consensus/raft/raft.ts";
import type { Entry } from "../../src/protocols/consensus/raft/vocabulary.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";
import { logLine } from "../../src/trace/log.ts";

interface Setting {
  nodes: number;
  delayMs?: number | readonly [number, number];
  seed?: number;
  options?: Partial<RaftOptions>;
  /** Whether to log the story. Defaults to true. */
  logged?: boolean;
  /** The only node with a short timeout, so that no other node becomes a candidate. */
  alone?: NodeId;
}

export interface RaftStage {
  readonly sim: Simulation<Raft>;
  readonly story: string[];
  /** Runs until a leader exists and all nodes know the commit index. */
  settle(): void;
  propose(node: NodeId, operation: string): void;
  /** The leader of the highest term among live nodes. */
  leader(): NodeId;
  /** The log of each live node, for example `1:noop 1:add 1`. */
  logs(): string[];
  /** Returns the number of messages of each type that are sent within this time, while no heartbeat is due. */
  costOf(act: () => void, withinMs: number): Record<string, number>;
}

export function raftStage({ nodes, delayMs = 10, seed = 1, options = {}, logged = true, alone }: Setting): RaftStage {
  const story: string[] = [];
  const all = Array.from({ length: nodes }, (_, node) => node);
  const given =
    alone === undefined
      ? options
      : { ...options, maxElectionMs: 301, priorities: far(all.filter((node) => node !== alone)) };
  const sim = simulation<Raft>({
    protocol: raft(given),
    nodes: all,
    seed,
    delayMs,
    ...(logged && { trace: (entry) => story.push(logLine(entry)) }),
  });
  for (const node of all) sim.start(node);
  let sequence = 0;

  const leader = (): NodeId => {
    const leaders = sim.world.alive.filter((node) => sim.world.state(node).role.is === "leader");
    const [first] = leaders.sort((a, b) => sim.world.state(b).term - sim.world.state(a).term);
    if (first === undefined) throw new Error("nobody leads");
    return first;
  };

  return {
    sim,
    story,
    leader,
    settle: () => sim.run(sim.now + 1_000),
    propose(node, operation) {
      sequence += 1;
      sim.command(node, { type: "propose", command: { client: node, sequence, operation } });
    },
    logs: () => sim.world.alive.map((node) => sim.world.state(node).log.entries.map(inWords).join(" ")),
    costOf(act, withinMs) {
      // Start just after a round of heartbeats.
      const sent = (): number => sim.messages.byType.heartbeat ?? 0;
      for (const before = sent(); sent() === before; ) sim.step();
      sim.run(sim.now + 25);
      const before = { ...sim.messages.byType };
      act();
      sim.run(sim.now + withinMs);
      const costs = Object.entries(sim.messages.byType).map(([type, count]) => [type, count - (before[type] ?? 0)]);
      return Object.fromEntries(costs.filter(([, count]) => count !== 0)) as Record<string, number>;
    },
  };
}

/** Slows these nodes so much that the first node is elected before any of them becomes a candidate. */
const far = (nodes: readonly NodeId[]) => nodes.map((node) => ({ node, behind: 200 }));

function inWords(entry: Entry): string {
  if (entry.type === "command") return `${entry.term}:${entry.command.operation}`;
  if (entry.type === "noop") return `${entry.term}:noop`;
  const { voters, outgoing } = entry.configuration;
  return `${entry.term}:{${outgoing === null ? "" : `${outgoing.join(",")}→`}${voters.join(",")}}`;
}
