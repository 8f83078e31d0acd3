import { describe, expect, it } from "vitest";
import { reaching } from "../../../test/protocols/reached.ts";
import { explore } from "../../check/explore.ts";
import { type Delay, simulation } from "../../sim/index.ts";
import { logLine } from "../../trace/log.ts";
import { type FloodSet, type FloodSetOptions, floodSet } from "./flood-set.ts";

const range = (nodes: number): number[] => Array.from({ length: nodes }, (_, id) => id);

function run(nodes: number, options: Partial<FloodSetOptions> = {}, delayMs: Delay = 10, seed = 1) {
  const log: string[] = [];
  const sim = simulation<FloodSet>({
    protocol: floodSet(options),
    nodes: range(nodes),
    seed,
    delayMs,
    trace: (entry) => log.push(logLine(entry)),
  });
  for (const node of range(nodes)) sim.start(node);
  for (const node of range(nodes)) sim.command(node, { type: "propose", value: `value ${node}` });
  sim.run();
  return { sim, log: `${log.join("\n")}\n`, decided: range(nodes).map((node) => sim.world.state(node).decided) };
}

/** Explores every run with this many crashes, each between steps or before any send of a step. */
const explored = (nodes: number, crashes: number, options: Partial<FloodSetOptions>) =>
  explore({
    protocol: floodSet({ values: ["a", "b", "c", "d"].slice(0, nodes), ...options }),
    nodes: range(nodes),
    network: "fifo",
    timers: "rounds",
    begin: "together",
    crashes,
    withinStep: true,
  });

describe("agreement in f + 1 rounds", () => {
  it("decides in spite of a crash in the middle of a broadcast (story)", async () => {
    const log: string[] = [];
    const sim = simulation<FloodSet>({
      protocol: floodSet({ values: ["a", "b", "c"] }),
      nodes: range(3),
      seed: 1,
      delayMs: 10,
      trace: (entry) => log.push(logLine(entry)),
    });
    for (const node of [1, 2, 0]) sim.start(node);
    sim.crash(0);
    sim.run();
    await expect(`${log.join("\n")}\n`).toMatchFileSnapshot("stories/flood-set-one-crashes.txt");
    expect(sim.verdict()).toEqual([]);
  });

  it.each([1, 2, 3, 4, 7])("costs (f + 1)N(N − 1) messages with %i nodes and ends after f + 1 rounds", (nodes) => {
    for (const f of [0, 1, 2, 3]) {
      const { sim, decided } = run(nodes, { f });
      expect(sim.messages.total).toBe((f + 1) * nodes * (nodes - 1));
      expect(floodSet({ f }).costs[0]?.messages(nodes)).toBe(sim.messages.total);
      expect(sim.now).toBe((f + 1) * 100);
      expect(new Set(decided)).toEqual(new Set(["value 0"]));
      expect(sim.verdict()).toEqual([]);
    }
  });

  it("decides the proposed value if all nodes propose the same one", () => {
    const sim = simulation<FloodSet>({ protocol: floodSet(), nodes: range(4), seed: 1, delayMs: 10 });
    for (const node of range(4)) sim.start(node);
    for (const node of range(4)) sim.command(node, { type: "propose", value: "the same" });
    sim.run();
    expect(range(4).map((node) => sim.events(node))).toEqual(
      range(4).map(() => [{ type: "decided", value: "the same" }]),
    );
  });

  it("N = 3, f = 1: holds in every run with a crash, but not with only f rounds", () => {
    expect(reaching(explored(3, 1, { f: 1 }), "decided")).toMatchObject({ verdict: "holds" });
    expect(explored(3, 1, { f: 1, rounds: "f" })).toMatchObject({
      verdict: "violated",
      property: { name: "agreement" },
    });
  });

  it("tolerates f crashes, and one more splits the nodes", () => {
    expect(explored(3, 1, { f: 0 })).toMatchObject({ verdict: "violated", property: { name: "agreement" } });
  });

  it("N = 4, f = 2: holds with three rounds, and with two fails when one crashing node passes its value to the next", {
    tags: ["long"],
  }, () => {
    expect(explored(4, 2, { f: 2, rounds: "f" })).toMatchObject({
      verdict: "violated",
      property: { name: "agreement" },
    });
    expect(explored(4, 2, { f: 2 })).toMatchObject({ verdict: "holds", states: 24_845 });
  });

  it("needs rounds that last longer than any message travels", () => {
    const broken = range(30).map((seed) => run(3, {}, [50, 250], seed).sim.verdict().length);
    expect(Math.max(...broken)).toBeGreaterThan(0);
  });

  it("rejects invalid options", () => {
    expect(() => floodSet({ f: 0, rounds: "f" })).toThrow("expected floodSet.f to be at least 1");
  });
});
