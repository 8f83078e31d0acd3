import { describe, expect, it } from "vitest";
import { electionStage, everyElection } from "../../../../test/protocols/election-stage.ts";
import { eachSize, range } from "../../../../test/protocols/sizes.ts";
import type { Exploration, ExploreOptions } from "../../../check/explore.ts";
import type { NodeId } from "../../../core/protocol.ts";
import type { Simulation } from "../../../sim/simulation.ts";
import { type Ring, ring } from "./ring.ts";

/** Starts idle nodes that all know which nodes have crashed. */
function stage(nodes: number, crashed: readonly NodeId[] = []): Simulation<Ring> {
  const { sim } = electionStage(ring(), { nodes, crashed });
  for (const node of sim.world.alive) for (const gone of crashed) sim.command(node, { type: "suspect", node: gone });
  return sim;
}

function called(sim: Simulation<Ring>, ...callers: readonly NodeId[]): number {
  for (const node of callers) sim.command(node, { type: "call" });
  sim.run();
  expect(sim.verdict()).toEqual([]);
  for (const node of sim.world.alive) expect(sim.world.state(node).leader).toBe(sim.world.alive.at(-1));
  return sim.messages.total;
}

describe("ring, the book's: what it costs", () => {
  const [one, two] = ring().costs;

  eachSize(1, 64, "N = %i: 2N with one caller, 4N with two", (nodes) => {
    expect(called(stage(nodes), 0)).toBe(one?.messages(nodes));
    if (nodes > 1) expect(called(stage(nodes), 0, nodes - 1)).toBe(two?.messages(nodes));
  });

  it("a crashed node is skipped, at no cost", () => {
    expect(called(stage(8, [7]), 4)).toBe(2 * 7);
    expect(called(stage(8, [5, 7]), 4)).toBe(2 * 6);
  });
});

/** Explores every run. Each node calls once, at any time. */
const everyRun = (nodes: number, options: Partial<ExploreOptions<Ring>> = {}) =>
  everyElection(ring(), range(0, nodes - 1), options);

const shown = ({ verdict, property, path }: Exploration<Ring>) => [verdict, property?.name, path.length];

describe("ring, the book's: every run", () => {
  it.each([
    ["fifo", 3, 878],
    ["bag", 3, 1_139],
  ] as const)("over %s links, of %i nodes that call once each, keeps E1 and E2", (network, nodes, states) => {
    expect(everyRun(nodes, { network })).toMatchObject({ verdict: "holds", states });
  });

  it("a crash that is reported before an election is called: the other nodes elect", () => {
    expect(called(stage(3, [2]), 0)).toBe(4);
  });

  it("E2 is violated by a crash during an election", () => {
    expect(shown(everyRun(3, { crashes: 1 }))).toEqual(["violated", "E2 liveness", 2]);
  });

  it("E2 is violated by a lost message", () => {
    expect(shown(everyRun(3, { losses: 1 }))).toEqual(["violated", "E2 liveness", 2]);
  });
});

describe("ring, the book's: invalid options", () => {
  it("rejects a ring that does not list every node once", () => {
    expect(() => ring({ ring: [0, 1, 1] }).init(1, [0])).toThrow("expected ring.ring to be every node once");
  });
});
