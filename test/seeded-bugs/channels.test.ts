/**
 * Checks that random runs of channels in views on the log, and of the multicast through it, find every seeded bug.
 *
 * @module-tag long
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { channelSystem } from "../../src/protocols/multicast/family/channels.ts";
import { logMulticastSystem } from "../../src/protocols/multicast/log-multicast.ts";
import { endure, synchronyOf } from "../protocols/channel-stage.ts";
import * as logStage from "../protocols/log-stage.ts";
import { range } from "../protocols/sizes.ts";
import { channelBugs, logMulticastBugs } from "./channels.ts";

type Channels = { readonly channelSystem: typeof channelSystem };
type LogMulticast = { readonly logMulticastSystem: typeof logMulticastSystem };

const FOLDER = "../../src/protocols/multicast";
const withBug = <Subject>(file: string, bug: string): Promise<Subject> =>
  import(/* @vite-ignore */ `${FOLDER}/${file}?bug=${bug}`);

const RUNS = Array.from({ length: 40 }, (_, run) => run);
const fates = fc.sample(logStage.fate(4, 40), { seed: 7, numRuns: RUNS.length });

/** Returns the first violation that these runs find, or null. */
function lookAtChannels({ channelSystem: systemOf }: Channels, runs: readonly number[]): string | null {
  for (const given of runs.map((run) => fates[run] as logStage.Fate)) {
    try {
      const stage = endure(given, "fifo", systemOf("fifo"));
      const [wrong] = synchronyOf(stage, "fifo");
      if (wrong !== undefined) return wrong.rule;
      const [violated] = stage.sim.verdict();
      if (violated !== undefined) return violated.property;
      const members = range(0, given.nodes - 1);
      for (const node of members)
        if (stage.viewsOf(node).view.members.join() !== members.join()) return "not all are in one view";
    } catch (error) {
      return (error as Error).message; // An invariant of the protocol itself failed.
    }
  }
  return null;
}

/** Returns the first violation that these runs find, or null. */
function lookAtLogMulticast({ logMulticastSystem: system }: LogMulticast, runs: readonly number[]): string | null {
  for (const given of runs.map((run) => fates[run] as logStage.Fate)) {
    const { late, records, sim, state } = logStage.endure(given, system());
    const [wrong] = [...logStage.synchronyOf({ records }).map(({ rule }) => rule), ...late];
    if (wrong !== undefined) return wrong;
    const [violated] = sim.verdict();
    if (violated !== undefined) return violated.property;
    const members = range(0, given.nodes - 1);
    for (const node of members)
      if (state(node).multicast.order.members.join() !== members.join()) return "the view contains an absent member";
    if (given.nodes > 2 && staysAfterCrash(sim, state)) return "the view contains a crashed member";
  }
  return null;
}

/** Returns whether a node stays in the view of the others long after it crashed. */
function staysAfterCrash(sim: logStage.LogStage["sim"], state: logStage.LogStage["state"]): boolean {
  sim.crash(0);
  sim.run(sim.now + 4_000);
  return state(1).multicast.order.members.includes(0);
}

describe("seeded bugs", () => {
  it.each(channelBugs)("of channels in views on the log: $name: $summary", async ({ name, run }) => {
    expect(lookAtChannels(await withBug("family/channels.ts", name), [run])).not.toBeNull();
  });

  it.each(logMulticastBugs)("of the multicast through a log: $name: $summary", async ({ name, run }) => {
    expect(lookAtLogMulticast(await withBug("log-multicast.ts", name), [run])).not.toBeNull();
  });

  const runsOf = (bugs: readonly { readonly run: number }[]): number[] => [...new Set(bugs.map(({ run }) => run))];
  it("finds nothing without a bug", () => expectNothing(runsOf(channelBugs), runsOf(logMulticastBugs)));
  it("finds nothing without a bug in other runs", { tags: ["larger"] }, () => expectNothing(RUNS, RUNS));

  function expectNothing(channels: readonly number[], logMulticast: readonly number[]): void {
    expect(lookAtChannels({ channelSystem }, channels)).toBeNull();
    expect(lookAtLogMulticast({ logMulticastSystem }, logMulticast)).toBeNull();
  }
});
