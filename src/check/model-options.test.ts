/** Checks that a misspelled option of `coterie/check`, or one of the wrong type, is rejected rather than ignored. */
import { expect, it } from "vitest";
import { bully } from "../protocols/election/bully/bully.ts";
import { explore, fewestFaults } from "./explore.ts";
import { exploreDepthFirst } from "./search/dfs.ts";
import { walk } from "./search/walks.ts";
import { shrink } from "./shrink/shrink.ts";
import { systemFor } from "./suite.ts";

const system = { protocol: bully(), nodes: [0, 1], network: "fifo", timers: "quiet", begin: "idle" } as const;

it.each<[object, string]>([
  [{ nodes: "3" }, 'expected nodes of explore() to be one or more different whole numbers of 0 or more, got "3"'],
  [{ nodes: [1, 1] }, "expected nodes of explore() to be one or more different whole numbers of 0 or more, got [1,1]"],
  [{ maxStates: Number.NaN }, "expected maxStates of explore() to be a whole number of 0 or more, got NaN"],
  [{ crashes: "1" }, 'expected crashes of explore() to be a whole number of 0 or more, got "1"'],
  [{ withinStep: 1 }, "expected withinStep of explore() to be true or false, got 1"],
  [
    { timers: "synchronous" },
    'expected timers of explore() to be one of free, quiet, rounds, timed, never, got "synchronous"',
  ],
  [{ begin: undefined }, "expected begin of explore() to be one of idle, down, together, got undefined"],
  [{ asks: [{ type: "call" }] }, 'expected asks of explore() to be a function, got [{"type":"call"}]'],
  [{ properties: "E1 safety" }, 'expected properties of explore() to be a list of properties, got "E1 safety"'],
  [
    { protocol: bully },
    "expected protocol of explore() to be a protocol: an object with a name, init() and properties",
  ],
  [{ crashs: 1 }, 'got "crashs"; did you mean crashes?'],
])("explore() rejects %j", (given, sentence) => {
  const refused = expect(() => explore({ ...system, ...given }));
  refused.toThrow(expect.objectContaining({ name: "UsageError", code: "bad-option" }));
  refused.toThrow(sentence);
});

it("explore() rejects unknown options", () => {
  expect(() => explore(undefined as never)).toThrow("expected the options of explore() to be an object, got undefined");
});

it.each<[string, () => unknown]>([
  ["exploreDepthFirst", () => exploreDepthFirst({ ...system, maxdepth: 1 } as never)],
  ["fewestFaults", () => fewestFaults({ ...system, crash: 1 } as never)],
  ["walk", () => walk({ ...system, strategy: "random", seed: 1, run: 1 } as never)],
  ["shrink", () => shrink({ ...system, replays: 1 } as never, [], bully().properties[0] as never)],
  ["systemFor", () => systemFor({ protocol: "bully", nodes: [0, 1], crash: 1 } as never)],
])("%s() rejects unknown options", (call, refused) => {
  expect(refused).toThrow(`expected the options of ${call}() to be among`);
});

it.each<[object, string]>([
  [{ seed: -1.5 }, "expected seed of walk() to be a whole number, got -1.5"],
  [{ strategy: "luck" }, 'expected strategy of walk() to be one of random, pct, swarm, got "luck"'],
  [{ numbers: 3 }, "expected numbers of walk() to be an iterable of run numbers, got 3"],
])("walk() rejects %j", (given, sentence) => {
  expect(() => walk({ ...system, strategy: "random", seed: 1, ...given } as never)).toThrow(sentence);
});

it.each<[object, string]>([
  [{ nodes: 3 }, "expected nodes of systemFor() to be one or more different whole numbers of 0 or more, got 3"],
  [{ times: 1.5 }, "expected times of systemFor() to be a whole number of 0 or more, got 1.5"],
  [{ crashNotifications: true }, "expected crashNotifications of systemFor() to be one of any, last, got true"],
])("systemFor() rejects %j", (given, sentence) => {
  expect(() => systemFor({ protocol: "bully", nodes: [0, 1], ...given })).toThrow(sentence);
});

it("options of a walk are also accepted by shrinking and exploration", () => {
  const options = { ...system, strategy: "random", seed: 1, runs: 1 } as const;
  walk(options);
  shrink(options, [], system.protocol.properties[0]!);
  expect(explore(options).verdict).toBe(explore(system).verdict);
});
