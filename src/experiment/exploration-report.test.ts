import { expect, test } from "vitest";
import { requestFrom } from "./check-request.ts";
import type { Experiment } from "./experiment.ts";
import { assumptionsOf, breakingFaults, deadlocks, scopeOf, whatNext } from "./exploration-report.ts";
import { explore } from "./explore.ts";

const answered = (experiment: Experiment) => {
  return { request: requestFrom(experiment), answer: explore(experiment) };
};

test("states the scope and the assumptions of a search", () => {
  const { request, answer } = answered({
    protocol: "ricart-agrawala",
    nodes: 2,
    crashes: 1,
    failureDetector: "last",
    maxDepth: 6,
  });
  expect(scopeOf(request)).toBe("every run within the bounds, the shortest first");
  expect(assumptionsOf(request, answer)).toEqual([
    "all nodes run and are idle; every node may request 1 entry",
    "every link keeps its order",
    "timers may expire at any time",
    "at most 1 crash; every node is notified of a crash, after all messages from the crashed node",
    "runs with more than 6 moves are left out",
  ]);
  const random = requestFrom({ protocol: "paxos", strategy: "swarm", runs: 2_000, seed: 7 });
  expect(scopeOf(random)).toBe("2,000 random runs (swarm) of at most 500 moves, seed 7");
});

test("reports a deadlock if nodes wait for each other and nothing else happens, but not after a safety violation", () => {
  const { answer } = answered({ protocol: "maekawa", nodes: 3 });
  expect(answer.property?.name).toBe("ME2 liveness");
  expect(deadlocks(answer)).toEqual(["Deadlock: node 0 waits for 1, 1 for 2, 2 for 0"]);
  const safety = { name: "ME1 safety", claim: "at most one node is inside", when: "always" } as const;
  expect(deadlocks({ ...answer, property: safety })).toEqual([]);
  expect(deadlocks({ ...answer, loop: 0 })).toEqual([]);
});

test("names the nodes that wait for a stopped node", () => {
  const { answer } = answered({ protocol: "ricart-agrawala", nodes: 2, request: [0], crashes: 1 });
  expect(answer.verdict).toBe("violated");
  expect(deadlocks(answer)).toEqual(["Node 0 waits for node 1, which is down"]);
});

test("states the fewest breaking faults and the proven harmless number", () => {
  const { answer } = answered({
    protocol: "ricart-agrawala",
    nodes: 2,
    request: [0],
    crashes: 1,
    losses: 1,
    fewestFaults: true,
  });
  expect(breakingFaults(answer)).toEqual(["1 fault breaks it; it holds without any"]);
  const of = (breaking: number | null, harmless: number) =>
    breakingFaults({ ...answer, faults: { breaking, harmless } });
  expect(of(0, -1)).toEqual(["violated without any fault"]);
  expect(of(3, 2)).toEqual(["3 faults break it; it holds with up to 2 faults"]);
  expect(of(null, 1)).toEqual(["it holds with up to 1 fault of these kinds"]);
  expect(breakingFaults({ ...answer, faults: null })).toEqual([]);
});

test("gives advice that fits the reason for an incomplete search", () => {
  const deep = answered({ protocol: "paxos", nodes: 3, maxDepth: 3 });
  expect(deep.answer.verdict).toBe("unknown");
  expect(whatNext(deep.request, deep.answer)).toMatch(/^raise the bounds/);
  const few = answered({ protocol: "paxos", nodes: 3, maxStates: 20 });
  expect(whatNext(few.request, few.answer)).toMatch(/^use fewer nodes or faults/);
  const random = answered({ protocol: "paxos", nodes: 3, strategy: "pct", runs: 3, workers: 1 });
  expect(whatNext(random.request, random.answer)).toMatch(/^more --runs or another --seed/);
});
