import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bounds, type ElectionSetting, electionStage } from "../../../../test/protocols/election-stage.ts";
import { reaching } from "../../../../test/protocols/reached.ts";
import { range } from "../../../../test/protocols/sizes.ts";
import { explore } from "../../../check/explore.ts";
import { type SystemSpec, systemFor } from "../../../check/suite.ts";
import { type ExtendedBullyOptions, extendedBully } from "./extended-bully.ts";

/** Starts idle nodes. Some of them may have crashed. */
const stage = ({ options, ...setting }: ElectionSetting & { options?: Partial<ExtendedBullyOptions> }) =>
  electionStage(extendedBully({ ...bounds, ...options }), setting);

describe("extended bully: resignation and rank", () => {
  it("a leader that resigns is succeeded by the next node, and follows it", async () => {
    const { sim, story, told, leaders } = stage({ nodes: 4 });
    sim.command(3, { type: "call" });
    sim.run();
    story.length = 0;
    sim.command(3, { type: "resign" });
    sim.run();
    expect(leaders()).toEqual({ 0: 2, 1: 2, 2: 2, 3: 2 });
    expect(sim.violations).toEqual([]);
    await expect(told()).toMatchFileSnapshot("../stories/bully-resignation.txt");
    sim.command(3, { type: "stand" });
    sim.run();
    expect(leaders()).toEqual({ 0: 3, 1: 3, 2: 3, 3: 3 });
  });

  it("when all nodes resign none leads, and the first to stand again does", () => {
    const { sim, leaders } = stage({ nodes: 3 });
    for (const node of [2, 1, 0]) {
      sim.command(node, { type: "resign" });
      sim.run();
    }
    expect(leaders()).toEqual({ 0: null, 1: null, 2: null });
    sim.command(0, { type: "stand" });
    sim.run();
    expect(leaders()).toEqual({ 0: 0, 1: 0, 2: 0 });
    expect(sim.violations).toEqual([]);
  });

  it("a resigned node that asks learns the leader", () => {
    const { sim, leaders } = stage({ nodes: 3 });
    sim.command(2, { type: "resign" });
    sim.run();
    expect(leaders()).toEqual({ 0: null, 1: null, 2: null }); // No election has been called yet.
    sim.command(2, { type: "call" });
    sim.run();
    expect(leaders()).toEqual({ 0: 1, 1: 1, 2: 1 });
    expect(sim.violations).toEqual([]);
  });

  it("E1, E2 hold under any resignations, rank changes, crashes and restarts", () => {
    const deeds = fc.array(
      fc.record({
        node: fc.nat(3),
        kind: fc.constantFrom(...(["resign", "stand", "call", "crash", "start", "rank"] as const)),
        afterMs: fc.nat(120),
        rank: fc.integer({ min: -2, max: 6 }),
      }),
      { maxLength: 12 },
    );
    fc.assert(
      fc.property(fc.nat(), deeds, (seed, script) => {
        const { sim } = stage({ nodes: 4, seed, delayMs: [1, 10] });
        for (const { node, kind, afterMs, rank } of script) {
          sim.run(sim.now + afterMs);
          const isAlive = sim.world.alive.includes(node);
          // A recovery or withdrawal while a different node declares itself is the known violation, and has its own
          // test.
          if (kind === "rank") isAlive && sim.command(node, { type: "rank", rank });
          else if (kind === "stand" || kind === "resign") {
            sim.run();
            if (isAlive) sim.command(node, { type: kind });
            sim.run();
          } else if (kind === "start") {
            sim.run();
            if (!isAlive) {
              sim.start(node);
              for (const other of range(0, 3).filter((each) => each !== node))
                if (sim.world.alive.includes(other)) sim.command(other, { type: "restore", node });
                else sim.command(node, { type: "suspect", node: other }); // Its own detector also suspects it.
            }
            sim.run();
          } else if (kind !== "crash") isAlive && sim.command(node, { type: kind });
          else if (isAlive) {
            sim.crash(node);
            sim.run(sim.now + bounds.maxDelayMs); // A detector suspects it once its messages have stopped.
            for (const witness of sim.world.alive) sim.command(witness, { type: "suspect", node });
          }
        }
        sim.run();
        const { properties } = extendedBully(bounds);
        for (const property of properties)
          if (property.when === "quiescent")
            expect([property.name, property.holds(sim.world)]).toEqual([property.name, true]);
      }),
      { numRuns: 500 },
    );
  });

  it("a candidate that stands again is known to all nodes: when the current leader resigns, one node succeeds it", () => {
    const { sim, leaders } = stage({ nodes: 4, delayMs: [1, 10] });
    for (const [node, type] of [
      [2, "resign"],
      [1, "resign"],
      [2, "stand"],
      [3, "resign"],
    ] as const) {
      sim.command(node, { type });
      sim.run();
    }
    expect(leaders()).toEqual({ 0: 2, 1: 2, 2: 2, 3: 2 });
    expect(range(0, 3).map((node) => sim.world.state(node).resigned)).toEqual(range(0, 3).map(() => [1, 3]));
    expect(sim.violations).toEqual([]);
  });

  it("a restarted node learns of an earlier resignation", () => {
    const { sim, leaders } = stage({ nodes: 3 });
    sim.command(2, { type: "resign" });
    sim.run();
    sim.crash(1);
    sim.start(1);
    sim.run();
    expect(leaders()).toEqual({ 0: 1, 1: 1, 2: 1 });
  });

  it("the highest rank leads, and ids break ties: the least loaded of four nodes", () => {
    const ranks = [1 / 8, 1 / 2, 1 / 2, 1 / 4].map((rank, node) => ({ node, rank }));
    const { sim, leaders } = stage({ nodes: 4, options: { ranks } });
    sim.command(0, { type: "call" });
    sim.run();
    expect(leaders()).toEqual({ 0: 2, 1: 2, 2: 2, 3: 2 });
    expect(sim.violations).toEqual([]);
  });

  it("a changed rank is announced to all nodes, and the highest rank then leads", () => {
    const { sim, leaders } = stage({ nodes: 4 });
    sim.command(0, { type: "call" });
    sim.run();
    const before = sim.messages.total;
    sim.command(1, { type: "rank", rank: 7 });
    sim.run();
    expect(leaders()).toEqual({ 0: 1, 1: 1, 2: 1, 3: 1 });
    expect(sim.messages.total - before).toBe(2 * 3); // Node 1 sends its rank to each peer, and then announces itself.
    sim.command(1, { type: "rank", rank: -1 });
    sim.run();
    expect(leaders()).toEqual({ 0: 3, 1: 3, 2: 3, 3: 3 });
    expect(sim.violations).toEqual([]);
  });

  it("rejects invalid ranks", () => {
    expect(() => extendedBully({ ranks: [{ node: 1 }] } as never)).toThrow(
      "expected bully.ranks[0].rank to be a finite number, got undefined",
    );
  });
});

describe("extended bully: every run", () => {
  const exploring = (words: Partial<SystemSpec>) =>
    reaching(
      explore(
        systemFor({
          protocol: "bully",
          variant: "extended",
          nodes: [0, 1, 2],
          timers: "quiet",
          crashNotifications: "last",
          ...words,
        }),
      ),
      "elected",
    );

  // Without resignations, the state space is the same as for the textbook version.
  it.each<[string, Partial<SystemSpec>, number]>([
    ["start together", { begin: "together" }, 681],
    ["start together, one crashes", { begin: "together", crashes: 1 }, 1_886],
    ["run, the lowest calls, one crashes", { begin: "idle", initiators: [0], crashes: 1 }, 503],
    ["run, the lowest calls, two crash", { begin: "idle", initiators: [0], crashes: 2 }, 666],
  ])("holds within bounds on time: 3 nodes %s", (_what, words, states) => {
    expect(exploring(words)).toMatchObject({ verdict: "holds", states });
  });
});
