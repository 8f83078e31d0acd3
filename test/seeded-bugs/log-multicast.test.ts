/**
 * Random runs of the multicast through a log find every bug that is put into it.
 *
 * @module-tag long
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { logMulticastSystem } from "../../src/protocols/multicast/log-multicast.ts";
import { endure, fate, type LogStage, synchronyOf } from "../protocols/log-stage.ts";
import { range } from "../protocols/sizes.ts";
import { logMulticastBugs } from "./log-multicast.ts";

type Subject = { readonly logMulticastSystem: typeof logMulticastSystem };

const withBug = (bug: string): Promise<Subject> =>
  import(/* @vite-ignore */ `../../src/protocols/multicast/log-multicast.ts?bug=${bug}`);

const RUNS = 40;

/** What the first of the runs that goes wrong finds. */
function look({ logMulticastSystem: system }: Subject): string | null {
  for (const given of fc.sample(fate(4, 40), { seed: 7, numRuns: RUNS })) {
    const { late, records, sim, state } = endure(given, system());
    const [wrong] = [...synchronyOf({ records }).map(({ rule }) => rule), ...late];
    if (wrong !== undefined) return wrong;
    const [violated] = sim.verdict();
    if (violated !== undefined) return violated.property;
    const members = range(0, given.nodes - 1);
    for (const node of members)
      if (state(node).multicast.order.members.join() !== members.join()) return "the view has who is not there";
    if (given.nodes > 2 && staysAfterCrash(sim, state)) return "the view has a member that has crashed";
  }
  return null;
}

/** Whether others still have a node in their view long after it has crashed. */
function staysAfterCrash(sim: LogStage["sim"], state: LogStage["state"]): boolean {
  sim.crash(0);
  sim.run(sim.now + 4_000);
  return state(1).multicast.order.members.includes(0);
}

describe("seeded bugs of the multicast through a log", () => {
  it.each(logMulticastBugs)("$name: $summary", async ({ name }) => {
    expect(look(await withBug(name))).not.toBeNull();
  });

  it("without one: nothing", () => {
    expect(look({ logMulticastSystem })).toBeNull();
  });
});
