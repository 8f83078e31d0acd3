/**
 * Random runs of channels in views on the log find every bug that is put into them.
 *
 * @module-tag long
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { channelSystem } from "../../src/protocols/multicast/family/channels.ts";
import { endure, synchronyOf } from "../protocols/channel-stage.ts";
import { fate } from "../protocols/log-stage.ts";
import { range } from "../protocols/sizes.ts";
import { channelBugs } from "./channels.ts";

type Subject = { readonly channelSystem: typeof channelSystem };

const withBug = (bug: string): Promise<Subject> =>
  import(/* @vite-ignore */ `../../src/protocols/multicast/family/channels.ts?bug=${bug}`);

const RUNS = 12;

/** What the first of the runs that goes wrong finds. */
function look({ channelSystem: systemOf }: Subject): string | null {
  for (const given of fc.sample(fate(4, 40), { seed: 7, numRuns: RUNS })) {
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
      return (error as Error).message; // An invariant of the protocol itself.
    }
  }
  return null;
}

describe("seeded bugs of channels in views on the log", () => {
  it.each(channelBugs)("$name: $summary", async ({ name }) => {
    expect(look(await withBug(name))).not.toBeNull();
  });

  it("without one: nothing", () => {
    expect(look({ channelSystem })).toBeNull();
  });
});
