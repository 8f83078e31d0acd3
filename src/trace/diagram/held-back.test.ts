import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holdBack } from "../../../test/trace/small-traces.ts";
import { causal } from "../../protocols/multicast/causal.ts";
import { simulation } from "../../sim/simulation.ts";
import type { TraceEntry } from "../entry.ts";
import { excerptOf } from "../excerpt.ts";
import { deliveredId } from "../log.ts";
import { type Standing, standingAfter, standingsBefore } from "../standing.ts";
import { stepsOf } from "../steps.ts";
import { type Track, tracksOf } from "./diagram.ts";

/** Returns each step with the node's standing after it. */
function holdingSteps(nodes: readonly number[], entries: readonly TraceEntry[]) {
  const standings = new Map(standingsBefore(nodes, entries));
  return stepsOf(entries).map((step) => {
    const own = step.indices.map((index) => entries[index] as TraceEntry);
    const after = own.reduce(standingAfter, standings.get(step.node) as Standing);
    standings.set(step.node, after);
    return { step, after, own };
  });
}

const deliveredIn = (own: readonly TraceEntry[]): string[] =>
  own.flatMap((entry) => (entry.kind === "event" ? (deliveredId(entry.event) ?? []) : []));

describe("tracks of held messages", () => {
  it("begin at the reception and end at the delivery of the same message, and never overlap", () => {
    const delays = fc.tuple(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 20, max: 200 }));
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 5 }), fc.nat(1_000), delays, (count, seed, delayMs) => {
        const nodes = Array.from({ length: count }, (_, node) => node);
        const entries: TraceEntry[] = [];
        const trace = (entry: unknown): void => void entries.push(entry as TraceEntry);
        const sim = simulation({ protocol: causal(), nodes, seed, delayMs, trace });
        for (const node of nodes) sim.wake(node);
        for (const round of [0, 1, 2, 3]) {
          for (const node of nodes) sim.command(node, { type: "send", payload: `${round}` });
          sim.run(sim.now + 15);
        }
        sim.run();
        const steps = holdingSteps(nodes, entries);
        const tracks = tracksOf(standingsBefore(nodes, entries), steps);
        for (const track of tracks.filter(({ isSurplus }) => !isSurplus)) {
          expect(steps[track.to ?? -1]?.own[0]?.kind).toBe("receive");
          expect(deliveredIn(steps[track.to ?? -1]?.own ?? [])).toContain(track.text);
          const shared = tracks.filter((other) => other !== track && isBeside(track, other));
          expect(shared).toEqual([]);
        }
      }),
    );
  });

  const isBeside = (a: Track, b: Track): boolean =>
    a.node === b.node &&
    a.row === b.row &&
    (a.from ?? -1) < (b.to ?? Number.POSITIVE_INFINITY) &&
    (b.from ?? -1) < (a.to ?? Number.POSITIVE_INFINITY);

  it("are at most four, and one that counts the rest, and end at a crash", () => {
    const { header, entries } = holdBack;
    const steps = holdingSteps(header.nodes, entries);
    const tracks = tracksOf(excerptOf(holdBack).before, steps);
    expect(tracks.map(({ text, row, isSurplus }) => [text, row, isSurplus])).toEqual([
      ["0.2", 0, false],
      ["0.3", 1, false],
      ["0.4", 2, false],
      ["0.5", 3, false],
      ["+1", 4, true],
      ["0.8", 0, false],
    ]);
    expect(steps[tracks.at(-1)?.to ?? -1]?.own[0]?.kind).toBe("crash");
  });

  it("begin before an excerpt and continue after it", () => {
    const part = excerptOf(holdBack, { from: 95, to: 105 });
    const tracks = tracksOf(part.before, holdingSteps([0, 1], part.entries));
    expect(tracks.map(({ text, from, to }) => [text, from, to])).toEqual([
      ["0.2", null, null],
      ["0.3", null, null],
      ["0.4", null, null],
      ["0.5", 0, null],
    ]);
  });
});
