import { describe, expect, test } from "vitest";
import { textWidth } from "../../../../src/trace/picture/boxes.ts";
import { TestedLaboratory } from "../../laboratory/engine/laboratory-under-test.ts";
import { factsOf, waitsIn } from "./facts.ts";
import { standing } from "./letters.ts";
import { placed } from "./places.ts";
import { hullPath } from "./ways.ts";

const laboratory = new TestedLaboratory();

/** Returns the topology of a scenario at a step; by default, at the last one. */
async function shown(scenario: string, at?: number) {
  const run = await laboratory.run({ scenario });
  const look = await laboratory.look(at ?? run.steps.length - 1);
  return { ...look, run, facts: factsOf(look.arrangement, look.inFlight) };
}

/** Returns the facts of all steps. */
async function said(scenario: string): Promise<Set<string>> {
  const run = await laboratory.run({ scenario });
  const all = new Set<string>();
  for (let step = 0; step < run.steps.length; step++) {
    const { arrangement, inFlight } = await laboratory.look(step);
    for (const fact of factsOf(arrangement, inFlight)) all.add(fact);
    expect(placed(arrangement, { width: 600, height: 200 }).places.size).toBe(arrangement.nodes.length);
  }
  return all;
}

describe("the facts of a topology", () => {
  test("shows three voting sets and a circular wait for Maekawa", async () => {
    const { arrangement, facts } = await shown("maekawa-deadlock");
    expect(arrangement.nodes.map(({ position }) => position.votingSet)).toEqual([
      [1, 2],
      [2, 3],
      [1, 3],
    ]);
    expect(waitsIn(arrangement).every(({ isCircular }) => isCircular)).toBe(true);
    expect(facts[0]).toBe("1, 2 and 3 wait for each other");
  });

  test("shows the token of a ring at a node or in transit, never both", async () => {
    const run = await laboratory.run({ scenario: "token-ring-two-want-in" });
    for (let step = 0; step < run.steps.length; step++) {
      const { arrangement, inFlight } = await laboratory.look(step);
      const holders = arrangement.nodes.filter(({ position }) => position.holds === "token");
      const carriers = inFlight.filter(({ isCarrier }) => isCarrier);
      // Nodes that have not started yet are unknown.
      if (arrangement.nodes.every(({ role }) => role !== "")) expect(holders.length + carriers.length).toBe(1);
    }
  });

  test.each([
    ["raymond-far-apart", /^5 waits for 2$/, /^privilege in transit: 0 → 2$/],
    ["central-server-one-waits", /^4 waits for 3, which 1 has admitted$/, /^4 waits/],
    ["suzuki-kasami-two-wait", /has the privilege$/, /waits for/],
    ["ricart-agrawala-equal-times", /^4 waits for 0$/, /^3 waits for 2$/],
    ["paxos-duel", /have promised to \d: a majority$/, /have promised to/],
    ["two-phase-commit-blocked", /^1 waits for 0$/, /^3 waits for 0$/],
    ["super-peer-dht-regions", /^0 serves 1$/, /^4 serves 5$/],
    ["super-peer-tokens-circle", /each have a token$/, /serves/],
    ["elected-server-server-crashes", /waits for|admitted/, /./],
    ["epoch-token-ring-lost-with-its-holder", /has the token$/, /token in transit/],
    ["maekawa-sanders-three-at-once", /waits for .*, which has the vote of/, /./],
  ])("%s", async (scenario, ...facts) => {
    const all = [...(await said(scenario))];
    for (const fact of facts) expect(all).toContainEqual(expect.stringMatching(fact));
  });
});

test("draws the outline of a set around all its nodes, with a margin", () => {
  expect(hullPath([], 10)).toBe("");
  expect(hullPath([{ x: 50, y: 50 }], 10)).toBe("M40 50A10 10 0 1 1 60 50A10 10 0 1 1 40 50Z");
  expect(
    hullPath(
      [
        { x: 0, y: 0 },
        { x: 100, y: 0 },
      ],
      10,
    ),
  ).toBe("M0 -10L100 -10A10 10 0 0 1 100 10L0 10A10 10 0 0 1 0 -10Z");
  // A point inside the hull is not a corner.
  const square = [
    { x: 0, y: 0 },
    { x: 100, y: 0 },
    { x: 100, y: 100 },
    { x: 0, y: 100 },
  ];
  expect(hullPath([...square, { x: 50, y: 50 }], 10)).toBe(hullPath(square, 10));
});

test("keeps labels at lines from overlapping each other and nodes", () => {
  const word = (text: string, x: number, y: number) => ({ text, at: { x, y } });
  const words = [word("request", 100, 50), word("request", 110, 52), word("reply", 200, 50), word("reply", 300, 100)];
  expect(standing(words, [{ x: 300, y: 100 }], 15, 400)).toEqual([words[0], words[2]]);
});

test("moves labels at the edge of a topology inward, so that none is cut off", () => {
  const [left, right] = ["voteGranted", "requestVote 12"];
  const words = [
    { text: left, at: { x: 12, y: 50 } },
    { text: right, at: { x: 395, y: 90 } },
  ];
  for (const { text, at } of standing(words, [], 15, 400)) {
    const half = textWidth(text, 11) / 2;
    expect(at.x - half).toBeGreaterThanOrEqual(0);
    expect(at.x + half).toBeLessThanOrEqual(400);
  }
});
