/** Produces the input for the live page: a simulated run in the format of a server's feed. */

import type { ClusterPicture, FeedEvent } from "../../src/cluster/feed.ts";
import { spansOf } from "../../src/cluster/headline.ts";
import { protocolNamed } from "../../src/protocols/index.ts";
import { messageInksOf } from "../../src/protocols/message-inks.ts";
import { type SimulationOptions, simulation } from "../../src/sim/index.ts";
import type { TraceEntry } from "../../src/trace/entry.ts";

type Options = SimulationOptions<{ state: object; command: { type: string } }>;

/** Durations in milliseconds: before the page is opened, while idle, and during the burst. */
export const [BEFORE_MS, REST_MS, BURST_MS] = [3_000, 2_500, 3_500];

export interface Recorded {
  readonly snapshot: FeedEvent;
  readonly later: readonly TraceEntry[];
  /** Whether the algorithm accepts commands for a burst. */
  readonly hasBurst: boolean;
}

/**
 * @param commands the number of commands in the burst, over all nodes
 * @param begin the start time of the cluster's clock
 */
export function recorded(protocol: string, nodeCount: number, commands: number, begin: number): Recorded {
  const nodes = Array.from({ length: nodeCount }, (_, node) => node);
  const entries: TraceEntry[] = [];
  const { model, family } = protocolNamed(protocol);
  const sim = simulation({
    protocol: model() as Options["protocol"],
    nodes,
    seed: 1,
    delayMs: [1, 3],
    trace: (entry) => entries.push({ ...entry, at: begin + entry.at }),
  });
  for (const node of nodes) sim.start(node);
  sim.run(BEFORE_MS + REST_MS);
  const asked = nodes.map((node) => ({ node, command: family.ask(node, Math.ceil(commands / nodeCount)) }));
  for (const { node, command } of asked) if (command !== null) sim.command(node, command);
  sim.run(BURST_MS);
  const opened = begin + BEFORE_MS;
  return {
    snapshot: {
      type: "snapshot",
      cluster: pictureOf(protocol, nodes, opened, begin),
      networks: [],
      entries: entries.filter(({ at }) => at < opened),
    },
    later: entries.filter(({ at }) => at >= opened),
    hasBurst: asked.some(({ command }) => command !== null),
  };
}

function pictureOf(protocol: string, ids: readonly number[], now: number, begin: number): ClusterPicture {
  return {
    name: "simulated",
    protocol,
    spans: spansOf(protocol),
    now,
    nodes: ids.map((id) => ({
      id,
      pid: 100 + id,
      address: "",
      admin: "",
      process: "running",
      exit: null,
      view: { role: "follower", leader: null },
      commands: [],
    })),
    network: { cuts: [], dropRate: 0, delayMs: [0, 0] },
    networkSince: begin,
    inks: messageInksOf(protocol),
    restarts: false,
    isAttached: false,
    takesFaults: true,
  };
}
