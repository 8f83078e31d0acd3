import { expect, test } from "vitest";
import {
  asChunkResult,
  type ChunkResult,
  campaignSummary,
  experimentSummaries,
  type RunSoak,
  runChunk,
} from "./chunk.ts";
import { type Campaign, chunksOf, only, parseCampaign, seedsOf } from "./file.ts";
import { smallestRun } from "./smallest.ts";

const noSoak: RunSoak = () => Promise.reject(new Error("there is none"));
const always = (): boolean => true;

const parsed = (written: object, scenarios = {}): Campaign =>
  parseCampaign({ file: "c.json", text: JSON.stringify(written), scenarios });

const walks = { name: "walks", walk: { protocol: "bully", steps: 30 } };
const lossy = { name: "lossy", simulate: { protocol: "ricart-agrawala", nodes: 3, loss: 0.05 } };
const small = (chunk: number): Campaign =>
  parsed({ name: "small", chunk, seeds: { from: 3, count: 40 }, experiments: [walks, lossy] });

async function resultsOf(campaign: Campaign): Promise<ChunkResult[]> {
  const results = await Promise.all(chunksOf(campaign).map((chunk) => runChunk(campaign, chunk, noSoak, always)));
  return results.map((result) => result as ChunkResult);
}

test("puts every seed into one chunk, with the remainder in the last one", () => {
  const campaign = small(15);
  const seeds = chunksOf(campaign).map((chunk) => [chunk.experiment, seedsOf(campaign, chunk)]);
  expect(seeds.slice(0, 3)).toEqual([
    [0, { from: 3, count: 15 }],
    [0, { from: 18, count: 15 }],
    [0, { from: 33, count: 10 }],
  ]);
  expect(seeds).toHaveLength(6);
});

test("makes the same summary for every order of results", async () => {
  const campaign = small(7);
  const results = await resultsOf(campaign);
  const summaries = [results, results.toReversed()].map((each) =>
    JSON.stringify(campaignSummary(campaign, experimentSummaries(campaign, each))),
  );
  expect(summaries[1]).toBe(summaries[0]);
  expect(JSON.parse(summaries[0] as string)).toMatchObject({ campaign: "small", runs: 80 });
});

test("a run depends on its seed, not on its chunk", async () => {
  const failuresWith = async (chunk: number) => {
    const campaign = small(chunk);
    const summaries = experimentSummaries(campaign, await resultsOf(campaign));
    return summaries.map(({ digest: _ofChunks, ...rest }) => ({ ...rest, timeMs: rest.timeMs?.max }));
  };
  const alone = await failuresWith(1);
  expect(alone.map(({ failures }) => failures.length > 0)).toEqual([true, true]);
  expect(await failuresWith(40)).toEqual(alone);
});

test("keeps the smallest failing run and shrinks it to a run that violates the same property", async () => {
  const campaign = small(40);
  const [walked, simulated] = experimentSummaries(campaign, await resultsOf(campaign));
  for (const [at, summary] of [walked, simulated].entries()) {
    const failure = summary?.failures[0];
    const kept = smallestRun(campaign.experiments[at] as never, failure?.smallest.seed ?? -1, failure?.what ?? "");
    expect(kept?.shrunkTo).toBeLessThanOrEqual(kept?.moves ?? 0);
    if (at === 1) expect(kept?.shrunkTo).toBe(3); // A command and two lost requests.
    expect(JSON.parse(kept?.trace.split("\n")[0] ?? "")).toMatchObject({ violation: { property: failure?.what } });
  }
});

test("a stopped job has no result", async () => {
  let left = 5;
  expect(await runChunk(small(40), { experiment: 0, chunk: 0 }, noSoak, () => left-- > 0)).toBeNull();
  left = 5;
  expect(await runChunk(small(40), { experiment: 1, chunk: 0 }, noSoak, () => left-- > 0)).toBeNull();
});

test("calls mayGoOn during a long run", async () => {
  const long = { name: "long", simulate: { protocol: "heartbeat", until: 2_000_000 } };
  let asked = 0;
  const mayGoOn = (): boolean => {
    asked += 1;
    return true;
  };
  const campaign = parsed({ name: "long", seeds: { count: 1 }, experiments: [long] });
  expect(await runChunk(campaign, { experiment: 0, chunk: 0 }, noSoak, mayGoOn)).not.toBeNull();
  expect(asked).toBeGreaterThan(2);
});

test("reports the failures that the driver of a soak returns, by seed", async () => {
  const campaign = parsed({ name: "s", seeds: { count: 4 }, experiments: [{ name: "s", soak: { command: ["x"] } }] });
  expect(chunksOf(campaign)).toHaveLength(4); // Each soak is one job, because it may take minutes.
  const odd: RunSoak = (_soak, seed) =>
    Promise.resolve({ size: 0, timeMs: null, failures: seed % 2 === 1 ? ["exit code 1"] : [] });
  const results = await Promise.all(chunksOf(campaign).map((chunk) => runChunk(campaign, chunk, odd, always)));
  const [summary] = experimentSummaries(campaign, results as ChunkResult[]);
  expect(summary?.failures).toMatchObject([{ what: "exit code 1", count: 2, seeds: [1, 3], smallest: { seed: 1 } }]);
});

test("rejects a result that does not belong to the campaign", async () => {
  const campaign = small(40);
  const [result] = await resultsOf(campaign);
  expect(asChunkResult(campaign, result)).toEqual(result);
  for (const other of [null, {}, { ...result, chunk: 1 }, { ...result, runs: 39 }, { ...result, experiment: 7 }])
    expect(asChunkResult(campaign, other)).toBeNull();
});

test("reduces a campaign to one experiment or one run", () => {
  const text = JSON.stringify({ name: "c", seeds: { count: 9 }, experiments: [walks, lossy] });
  expect(JSON.parse(only(text, "c.json", "lossy:7"))).toMatchObject({
    experiments: [{ name: "lossy", seeds: { from: 7, count: 1 } }],
  });
  expect(() => only(text, "c.json", "lost")).toThrow("expected --only to be one of walks, lossy");
  expect(() => only(text, "c.json", "lossy:x")).toThrow("the seed of --only");
});

const one = (experiment: object, rest: object = { seeds: { count: 1 } }) => ({
  name: "c",
  ...rest,
  experiments: [{ name: "e", ...experiment }],
});
const paxos = { protocol: "paxos" };

test.each<[object, string]>([
  [{}, "c.json: expected name to be"],
  [one({ simulat: paxos }), "expected experiments[0].simulat to be absent, got"],
  [one({ simulate: paxos }, {}), "expected experiments[0].seeds to be present"],
  [one({}), "expected experiments[0] to be one of simulate, walk, scenario, soak, got"],
  [one({ simulate: paxos, walk: paxos }), 'got "simulate and walk"'],
  [one({ simulate: { protocol: "paxo" } }), "experiments[0].simulate: expected the protocol"],
  [one({ simulate: { ...paxos, dela: 3 } }), "expected dela to be absent, got 3 (did you mean delay?)"],
  [one({ simulate: { ...paxos, delay: "often" } }), "expected delay to be such as 10, 1..10"],
  [one({ simulate: { ...paxos, seed: 3 } }), "expected seed to be absent, since the campaign sets it"],
  [one({ simulate: { ...paxos, losses: 3 } }), "it applies to explorations"],
  [one({ walk: { ...paxos, strategy: "bfs" } }), "expected experiments[0].walk.strategy to be random, pct or swarm"],
  [one({ walk: { ...paxos, withinStep: 3 } }), "expected withinStep to be true, or absent, got 3"],
  [one({ soak: { command: [] } }), "expected experiments[0].soak.command to be a program and its arguments"],
  [one({ simulate: paxos }, { seeds: { from: 2 ** 32 - 5, count: 10 } }), "expected experiments[0].seeds.from to be"],
  [one({ simulate: paxos }, { seeds: { count: 100_000_000 }, chunk: 1 }), "large enough for at most 1000000 jobs"],
  [{ ...one({}), experiments: [walks, walks] }, 'expected experiments to be every name once, got "walks"'],
])("refuses %j: %s", (written, sentence) => {
  expect(() => parsed(written)).toThrow(sentence);
});

test("refuses invalid JSON, and reads scenario files", () => {
  expect(() => parseCampaign({ file: "c.json", text: "{", scenarios: {} })).toThrow("c.json: expected JSON");
  const text = "name: two\nprotocol: bully\nnodes: 3\nsteps:\n  - call: 0\n";
  const campaign = parsed(one({ scenario: "two.yaml" }), { "two.yaml": text });
  expect(campaign.experiments[0]).toMatchObject({ kind: "simulate", made: { scenario: { name: "two" } } });
  expect(() => parsed(one({ scenario: "two.yaml" }), { "two.yaml": "name: 3" })).toThrow("two.yaml:1");
});
