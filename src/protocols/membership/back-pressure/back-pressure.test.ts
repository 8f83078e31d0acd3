/** Back-pressure: its log, what it costs, every run of two and of three nodes within bounds, and what a lost word comes to. */
import { describe, expect, it } from "vitest";
import type { Experiment } from "../../../experiment/experiment.ts";
import { explore } from "../../../experiment/explore.ts";
import { simulation } from "../../../sim/simulation.ts";
import { logLine } from "../../../trace/log.ts";
import { protocolNamed } from "../../index.ts";
import { backPressure, slowAmong } from "./back-pressure.ts";
import type { PressureModel, PressureModelOptions } from "./workload.ts";

function stage(nodes: number, options: PressureModelOptions = {}, seed = 1) {
  const log: string[] = [];
  const events: Record<string, number> = {};
  const sim = simulation<PressureModel>({
    protocol: protocolNamed("back-pressure").model(options) as never,
    nodes: Array.from({ length: nodes }, (_, i) => i),
    seed,
    delayMs: [1, 20],
    trace: (entry) => {
      if (entry.kind !== "event") return;
      log.push(logLine(entry));
      const { type } = (entry.event as { body: { type: string } }).body;
      events[type] = (events[type] ?? 0) + 1;
    },
  });
  for (let node = 0; node < nodes; node++) sim.start(node);
  const slow = (node: number) => slowAmong(sim.world.state(node).pressure, sim.world.nodes);
  const tell = (node: number, type: "fallBehind" | "catchUp") =>
    sim.command(node, { type: "pressure", body: { type } });
  return { sim, log, events, slow, tell };
}

const silent = { workload: { items: 0 } };

describe("back-pressure", () => {
  it("two nodes send, and wait for the readers of each other", async () => {
    const { sim, log } = stage(2, { workload: { items: 3, limit: 2 } });
    sim.run(10_000);
    expect(sim.verdict()).toEqual([]);
    await expect(`${log.join("\n")}\n`).toMatchFileSnapshot("../stories/back-pressure-slow-readers.txt");
  });

  it("who falls behind says so at once, and again while it lasts, and that it is over", () => {
    const { sim, events, slow, tell } = stage(3, silent);
    const said = (): number => sim.messages.byType["pressure.pressure"] ?? sim.messages.byType.pressure ?? 0;
    tell(1, "catchUp"); // It had never fallen behind.
    expect(said()).toBe(0);
    tell(1, "fallBehind");
    tell(1, "fallBehind");
    sim.run(100);
    const [cost] = backPressure().costs;
    expect(said()).toBe(cost?.messages(3));
    expect([slow(0), slow(2), slow(1)]).toEqual([[1], [1], []]);
    sim.run(10_000);
    expect([slow(0), events.expired]).toEqual([[1], undefined]);
    tell(1, "catchUp");
    const before = said();
    sim.run(20_000);
    expect([slow(0), slow(2), said() - before]).toEqual([[], [], 0]);
  });

  it("nobody waits for a node that has crashed", () => {
    const { sim, events, slow, tell } = stage(2, silent);
    tell(1, "fallBehind");
    sim.run(600);
    sim.crash(1);
    sim.run(1_400);
    expect(slow(0)).toEqual([1]);
    sim.run(2_500);
    expect([slow(0), events.expired]).toEqual([[], 1]);
  });

  it("random runs: readers of any speed, crashes that are noticed", () => {
    const seen: Record<string, number> = {};
    for (let seed = 1; seed <= 40; seed++) {
      const nodes = 2 + (seed % 3);
      const workload = { items: 20, window: 1 + (seed % 4), limit: 1 + (seed % 5), takeMs: 10 + 40 * (seed % 7) };
      const { sim, events } = stage(nodes, { workload }, seed);
      sim.run(37 * seed);
      if (seed % 2 === 0) {
        sim.crash(1);
        for (const node of sim.world.alive) sim.command(node, { type: "workload", body: { type: "suspect", node: 1 } });
      }
      sim.run(60_000);
      expect([seed, sim.verdict().map(({ property }) => property)]).toEqual([seed, []]);
      for (const [type, count] of Object.entries(events)) seen[type] = (seen[type] ?? 0) + count;
    }
    for (const type of ["fellBehind", "caughtUp", "relieved", "expired", "consumed"])
      expect([type, (seen[type] ?? 0) > 0]).toEqual([type, true]);
  });
});

type Bounds = Omit<Experiment, "protocol">;
const explored = (bounds: Bounds) => explore({ protocol: "back-pressure", ...bounds });

function isSound(bounds: Bounds, states: number, events: readonly string[]): void {
  const answer = explored(bounds);
  expect([answer.verdict, answer.property, answer.ended, answer.states]).toEqual(["unknown", null, null, states]);
  expect(answer.checked.map(({ name }) => name)).toEqual([
    "each once, in order",
    "the window is kept",
    "readers have room",
    "all is sent and read",
  ]);
  expect(Object.keys(answer.reach.events)).toEqual(expect.arrayContaining([...events]));
}

/** What bounds cut off is not known, so the verdict is never `holds`. */
describe("back-pressure, every run within bounds", () => {
  const flows = ["workload.fellBehind", "workload.caughtUp", "workload.consumed", "pressure.relieved"];

  it("two nodes, six time-outs at any time", () => {
    isSound({ nodes: 2, maxTimeouts: 6 }, 7_711, [...flows, "pressure.expired"]);
  });

  it("two nodes, seven time-outs, a crash that is noticed", { tags: ["long"] }, () => {
    isSound({ nodes: 2, maxTimeouts: 7, crashes: 1, failureDetector: "last" }, 26_584, flows);
  });

  it("three nodes, seven time-outs where nothing is on its way", { tags: ["long"] }, () => {
    isSound({ nodes: 3, timers: "quiet", maxTimeouts: 7 }, 36_667, flows);
  });
});

describe("back-pressure, without what it assumes", () => {
  it("over links that change the order, a word comes too late: a reader gets more than it has room for", () => {
    const { property } = explored({ nodes: 2, maxTimeouts: 4, network: "bag", property: "readers have room" });
    expect(property?.name).toBe("readers have room");
  });

  it("over links that lose, senders go on until it is said again", () => {
    const bounds: Bounds = { nodes: 2, maxTimeouts: 4, losses: 1, property: "readers have room" };
    expect(explored(bounds).property?.name).toBe("readers have room");
  });
});
