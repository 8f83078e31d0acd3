/** How long epoch-bully is without a leader, in virtual time: what the docs page says is measured here, exactly. */
import { describe, expect, it } from "vitest";
import { type Random, random } from "../../../core/random.ts";
import type { Delay } from "../../../sim/delay.ts";
import { simulation } from "../../../sim/simulation.ts";
import { type EpochBully, epochBully } from "./epoch-bully.ts";

const all = [0, 1, 2, 3, 4];
const QUIET_MS = 3_000;
const PATIENCE_MS = 60_000;

interface Setting {
  delayMs: Delay;
  seeds: number;
  crashes: number;
  /** How long after the next one leads the crashed one starts again, and that one crashes. */
  restartMs: readonly [number, number];
  crashMs: readonly [number, number];
}

const rested: Setting = {
  delayMs: [0.1, 2],
  seeds: 10,
  crashes: 100,
  restartMs: [300, 1_000],
  crashMs: [QUIET_MS, QUIET_MS + 500],
};
/** The next leader crashes at once, as the one before it is about to come back. */
const hunted: Setting = { ...rested, crashMs: [20, 80] };

/** Milliseconds from the crash of a leader until the next one is elected, one number for each crash; least first. */
function failovers({ delayMs, seeds, crashes, restartMs, crashMs }: Setting): number[] {
  const runs = Array.from({ length: seeds }, (_, seed) => run(seed, random(seed).stream("deeds")));
  return runs.flat().sort((a, b) => a - b);

  function run(seed: number, draw: Random): number[] {
    let epoch = 0;
    const onEvent = (_at: number, _node: number, event: { type: string; epoch: number }): void => {
      if (event.type === "elected") epoch = Math.max(epoch, event.epoch);
    };
    const sim = simulation<EpochBully>({ protocol: epochBully(), nodes: all, seed, delayMs, onEvent });
    const starts = new Map(all.map((node) => [node, draw.between(0, 300)]));
    const goOn = (untilMs: number, isDone = (): boolean => false): void => {
      while (!isDone() && sim.now < untilMs) {
        const [node, at] = [...starts].reduce((a, b) => (b[1] < a[1] ? b : a), [-1, untilMs] as [number, number]);
        if (sim.step(at)) continue;
        sim.run(at);
        if (starts.delete(node)) sim.start(node);
      }
    };
    const leading = (): number | undefined =>
      sim.world.alive.find((node) => sim.world.state(node).phase.is === "leading");
    goOn(QUIET_MS);
    return Array.from({ length: crashes }, () => {
      goOn(sim.now + PATIENCE_MS, () => leading() !== undefined);
      const from = sim.now;
      const last = epoch;
      const leader = leading() as number;
      sim.crash(leader);
      goOn(from + PATIENCE_MS, () => epoch > last);
      const tookMs = sim.now - from;
      starts.set(leader, sim.now + draw.between(...restartMs));
      goOn(sim.now + draw.between(...crashMs));
      expect(sim.violations).toEqual([]);
      return Math.round(tookMs);
    });
  }
}

/** Least, median, 99th percentile, most. */
const spread = (took: readonly number[]): (number | undefined)[] =>
  [0, 0.5, 0.99, 1].map((share) => took[Math.min(took.length - 1, Math.floor(took.length * share))]);

describe("epoch-bully: how long there is no leader after a crash, in milliseconds", () => {
  it("one crash at a time", () => {
    expect(spread(failovers(rested))).toEqual([418, 481, 545, 657]);
  });

  it("the next leader crashes as the one before it comes back", () => {
    expect(spread(failovers(hunted))).toEqual([427, 491, 686, 1_060]);
  });

  it("round trips take twice as long as a node waits for answers at first", () => {
    const slow = { ...rested, delayMs: [0, 120], seeds: 4, crashes: 25 } as const;
    expect(spread(failovers(slow))).toEqual([687, 857, 1_786, 1_786]);
  });

  it("no round trip is as short as a node waits for answers at first", () => {
    const slower = { ...rested, delayMs: [40, 150], seeds: 4, crashes: 25 } as const;
    expect(spread(failovers(slower))).toEqual([803, 1_009, 2_250, 2_250]);
  });
});
