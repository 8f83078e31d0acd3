/** Names: their story, what each costs, every run of two and of three nodes within bounds, and what breaks without its assumption. */
import { describe, expect, it } from "vitest";
import { explore as exploreModel } from "../../../check/explore.ts";
import type { Vocabulary } from "../../../core/protocol.ts";
import type { Experiment } from "../../../experiment/experiment.ts";
import { explore } from "../../../experiment/explore.ts";
import { simulation } from "../../../sim/simulation.ts";
import { logLine } from "../../../trace/log.ts";
import { protocolNamed, variantNamed } from "../../index.ts";
import { type Forgotten, names } from "./names.ts";
import { NAME } from "./program.ts";
import type { NamesModel, NamesModelOptions } from "./workload.ts";

const [ONE, OTHER] = ["one", "other"];
const model = (options: NamesModelOptions) => protocolNamed("names").model(options) as never;

function stage(
  nodes: number,
  workload: NamesModelOptions["workload"] = {},
  seed = 1,
  forgotten: Forgotten = "together",
) {
  const story: string[] = [];
  const events: Record<string, number> = {};
  const sim = simulation<NamesModel>({
    protocol: model({ workload, words: { forgotten } }),
    nodes: Array.from({ length: nodes }, (_, i) => i),
    seed,
    delayMs: [1, 20],
    trace: (entry) => {
      if (entry.kind !== "event") return;
      story.push(logLine(entry));
      const { type } = (entry.event as { body: { type: string } }).body;
      events[type] = (events[type] ?? 0) + 1;
    },
  });
  for (let node = 0; node < nodes; node++) sim.start(node);
  const ways = (): (string | null)[] =>
    sim.world.alive.map((node) => sim.world.state(node).names.running[NAME]?.setting ?? null);
  return { sim, story, events, ways };
}

describe("names", () => {
  it("one node uses a name, all run it, and all put it away at once", async () => {
    const { sim, story, ways } = stage(3, { uses: 1, restMs: 2, useMs: 700 });
    sim.run(200);
    expect(ways()).toEqual([ONE, ONE, ONE]);
    sim.run(6_000);
    expect(ways()).toEqual([null, null, null]);
    expect(sim.verdict()).toEqual([]);
    await expect(`${story.join("\n")}\n`).toMatchFileSnapshot("../stories/names-put-away.txt");
  });

  it.each([2, 3, 5, 8])("N = %i: what it costs to open a name, and to put it away", (nodes) => {
    const [open, away] = names().costs.map((cost) => cost.messages(nodes));
    const { sim } = stage(nodes, { uses: 0 });
    sim.run(100); // All have said hello.
    const run = { type: "run", name: NAME, setting: "one", forgotten: "together", isEstablished: false, by: null };
    const give = (body: object): void => sim.command(0, { type: "names", body } as never);
    for (const command of [run, { type: "use", name: NAME }]) give(command);
    sim.run(3_000); // It is idle at all others when they are asked.
    give({ type: "rest", name: NAME });
    sim.run(8_000);
    const count = (...types: string[]): number =>
      types.reduce((sum, type) => sum + (sim.messages.byType[`names.${type}`] ?? sim.messages.byType[type] ?? 0), 0);
    expect(count("open")).toBe(open);
    expect(count("ask", "idle", "over")).toBe(away);
  });

  it("nothing is put away by all while a node is down and suspected", () => {
    const { sim, ways } = stage(3, { uses: 1, restMs: 2 });
    sim.run(100);
    sim.crash(2);
    for (const node of [0, 1]) sim.command(node, { type: "names", body: { type: "suspect", node: 2 } } as never);
    sim.run(10_000);
    expect(ways()).toEqual([ONE, ONE]);
    sim.start(2);
    for (const node of [0, 1]) sim.command(node, { type: "names", body: { type: "restore", node: 2 } } as never);
    sim.run(20_000);
    expect(ways()).toEqual([null, null, null]);
  });

  it("random runs: crashes, two settings, uses of any length", () => {
    const seen: Record<string, number> = {};
    for (let seed = 1; seed <= 150; seed++) {
      const nodes = 2 + (seed % 4);
      const settings = seed % 3 === 0 ? [ONE, OTHER] : [ONE];
      const workload = { uses: 3, settings, restMs: 4_000, useMs: 900 };
      const { sim, events } = stage(nodes, workload, seed, seed % 5 > 0 ? "together" : "alone");
      const down = seed % nodes;
      sim.run(500 + 37 * seed);
      if (seed % 2 === 0) sim.crash(down);
      sim.run(1_500 + 41 * seed);
      if (seed % 2 === 0) sim.start(down);
      sim.run(40_000);
      expect([seed, sim.verdict().map(({ property }) => property)]).toEqual([seed, []]);
      for (const [type, count] of Object.entries(events)) seen[type] = (seen[type] ?? 0) + count;
    }
    for (const type of ["putAway", "renewed", "differs", "refused", "gaveWay", "established", "resumes"])
      expect([type, (seen[type] ?? 0) > 0]).toEqual([type, true]);
  });
});

type Bounds = Omit<Experiment, "protocol" | "variant">;

const explored = (bounds: Bounds) => explore({ protocol: "names", variant: "bounded", ...bounds });
const two = { workload: { settings: [ONE, OTHER] } };

function isSound(bounds: Bounds, states: number, events: readonly string[]): void {
  const answer = explored(bounds);
  expect([answer.verdict, answer.property, answer.ended, answer.states]).toEqual(["unknown", null, null, states]);
  expect(answer.checked.map(({ name }) => name)).toEqual([
    "majorities keep their settings",
    "one setting",
    "a name in use is not put away",
    "words are meant",
    "idle names are put away",
  ]);
  expect(Object.keys(answer.reach.events)).toEqual(expect.arrayContaining([...events]));
}

/** What bounds cut off is not known, so the verdict is never `holds`. */
describe("names, every run within bounds", () => {
  const putAway = ["names.agreed", "names.putAway"];
  const settings = ["names.differs", "names.refused", "names.gaveWay"];

  it("two nodes, six time-outs at any time: put away, and begun anew by who uses it again", () => {
    isSound({ nodes: 2, maxTimeouts: 6 }, 4_283, [...putAway, "names.renewed"]);
  });

  it("two nodes that may want it in two ways, six time-outs at any time", () => {
    isSound({ nodes: 2, maxTimeouts: 6, options: two }, 18_691, [...putAway, "names.renewed", ...settings]);
  });

  it("one node that wants it, and has it at once", () => {
    const { reach } = explored({ nodes: 1, maxTimeouts: 6 });
    expect(Object.keys(reach.events)).toEqual(expect.arrayContaining(["names.ran", "workload.uses", "words.entered"]));
  });

  /** What a node said, put away, and began anew in another way was taken by one that had put it away, too, in the new way. */
  it("two nodes that put it away each alone, and may want it in two ways", { tags: ["long"] }, () => {
    const options = { workload: { uses: 2, settings: [ONE, OTHER] }, words: { forgotten: "alone" } } as const;
    isSound({ nodes: 2, maxTimeouts: 6, options }, 100_646, ["names.putAway", ...settings]);
  });

  it("two nodes, a crash that is noticed, and a recovery", () => {
    const crash: Bounds = { crashes: 1, recoveries: 1, failureDetector: "last" };
    isSound({ nodes: 2, maxTimeouts: 4, ...crash }, 14_897, [...putAway, "workload.resumes"]);
  });

  it("two nodes, two ways, a crash and a recovery", { tags: ["long"] }, () => {
    const bounds: Bounds = { nodes: 2, maxTimeouts: 4, crashes: 1, recoveries: 1, options: two };
    isSound(bounds, 76_256, [...putAway, ...settings, "workload.resumes"]);
    isSound({ ...bounds, journal: "lost" }, 50_853, [...putAway, ...settings]);
  });

  it("three nodes, time-outs where nothing is on its way", () => {
    isSound({ nodes: 3, timers: "quiet", maxTimeouts: 8 }, 10_942, putAway);
  });

  it("three nodes that take what has arrived in one order, any six time-outs at any time: begun anew, too", () => {
    const protocol = variantNamed("names", "bounded").model();
    const { verdict, states, reach } = exploreModel<Vocabulary>({
      protocol,
      properties: protocol.properties.filter(({ when }) => when === "always"),
      nodes: [0, 1, 2],
      network: "fifo",
      timers: "free",
      begin: "together",
      delays: 0,
      maxTimeouts: 6,
      counters: ["round"],
    });
    expect([verdict, states]).toEqual(["unknown", 480_000]);
    expect(Object.keys(reach.events)).toEqual(expect.arrayContaining([...putAway, "names.renewed"]));
  });

  it("three nodes, any two time-outs at any time", { tags: ["long"] }, () => {
    isSound({ nodes: 3, maxTimeouts: 2 }, 217_027, ["words.entered", "names.established"]);
  });
});

describe("names, without what they assume", () => {
  const broken = (bounds: Bounds) => explored(bounds).property?.name;

  it("over links that change the order a name in use is put away", () => {
    const property = "a name in use is not put away";
    expect(broken({ nodes: 2, maxTimeouts: 6, network: "bag", options: two, property })).toBe(property);
  });

  it("and words are taken that were said under another setting", () => {
    const bounds: Bounds = { nodes: 2, maxTimeouts: 4, network: "bag", options: two };
    expect(broken({ ...bounds, property: "words are meant", crashes: 1, recoveries: 1 })).toBe("words are meant");
  });
});
