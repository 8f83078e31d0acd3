/** Whole members with one lock: every run of two and of three within bounds, and many random ones beyond. */
import { describe, expect, it } from "vitest";
import { type ExploreOptions, explore as exploreModel } from "../../../check/explore.ts";
import type { Vocabulary } from "../../../core/protocol.ts";
import type { Experiment } from "../../../experiment/experiment.ts";
import { explore } from "../../../experiment/explore.ts";
import { variantNamed } from "../../index.ts";
import type { MemberOptions } from "./member.ts";

type Bounds = Omit<Experiment, "protocol" | "options"> & { options?: MemberOptions };

const explored = (bounds: Bounds) => explore({ protocol: "names", ...bounds });

const twoWays: MemberOptions = { workload: { settings: ["one", "other"] } };
const twice: MemberOptions = { workload: { uses: 2 } };
const crash = { crashes: 1, failureDetector: "last" } as const;
const crashAndRecovery = { ...crash, recoveries: 1 } as const;

/** `unknown`: time-outs beyond the bound were cut off. */
function isSound(bounds: Bounds, verdict: "holds" | "unknown", states: number, events: readonly string[]): void {
  const answer = explored(bounds);
  expect([answer.verdict, answer.property, answer.ended, answer.states]).toEqual([verdict, null, null, states]);
  expect(Object.keys(answer.reach.events)).toEqual(expect.arrayContaining(["mutex.entered", ...events]));
}

const settings = ["names.differs", "names.refused", "names.gaveWay"];
const putAway = ["names.agreed", "names.putAway"];
const recovered = ["workload.resumes", "detector.suspected", "detector.restored"];

it("what is asked of a whole member", () => {
  const of = (variant: string) => explored({ variant, nodes: 1, maxTimeouts: 0 }).checked.map(({ name }) => name);
  const always = ["majorities keep their settings", "one setting"];
  const grants = ["no two grants overlap", "tokens grow", "messages are meant"];
  const uses = ["a name in use is not put away", "idle names are put away"];
  expect(of("lock")).toEqual([...always, "mutex: ME1 safety", "mutex: ME3 ordering", ...grants, "asked is granted"]);
  expect(of("ring-lock")).toEqual([...always, "mutex: ME1 safety", "mutex: one token an epoch", ...grants, ...uses]);
  expect(of("ring-lock-timed")).toEqual([
    ...always,
    "mutex: one token an epoch",
    "messages are meant",
    ...uses,
    "asked is granted",
  ]);
});

describe("two members, every run", () => {
  it("that would have the lock in two ways", () => {
    isSound({ variant: "lock", nodes: 2, options: twoWays }, "holds", 668, settings);
  });

  it("that would have it in two ways, one of which crashes and comes back", { tags: ["long"] }, () => {
    const bounds: Bounds = { variant: "lock", nodes: 2, options: twoWays, ...crashAndRecovery };
    isSound(bounds, "holds", 35_217, [...settings, ...recovered]);
  });

  it("with ten time-outs: the lock is put away, and begun anew by who enters again", () => {
    const bounds: Bounds = { variant: "ring-lock", nodes: 2, options: twice, maxTimeouts: 10 };
    isSound(bounds, "unknown", 7_642, [...putAway, "names.renewed"]);
  });

  it("with six time-outs, a crash and a recovery: likewise", { tags: ["long"] }, () => {
    const bounds: Bounds = { variant: "ring-lock", nodes: 2, maxTimeouts: 6, ...crashAndRecovery };
    isSound(bounds, "unknown", 40_185, [...putAway, "names.renewed", ...recovered]);
  });

  it("with six time-outs, those of leases among them", { tags: ["long"] }, () => {
    const bounds: Bounds = { variant: "ring-lock-timed", nodes: 2, options: twice, maxTimeouts: 6 };
    isSound(bounds, "unknown", 141_132, [...putAway, "names.renewed", "mutex.lost"]);
  });
});

/** One node takes all that has arrived before the next does; timers run out whenever they like. */
function inOneOrder(variant: string, bounds: Partial<ExploreOptions<Vocabulary>>) {
  const protocol = variantNamed("names", variant).model();
  return exploreModel<Vocabulary>({
    protocol,
    properties: protocol.properties.filter(({ when }) => when === "always"),
    nodes: [0, 1, 2],
    network: "fifo",
    timers: "free",
    begin: "together",
    delays: 0,
    counters: ["round"],
    ...bounds,
  });
}

describe("three members, every run", () => {
  it("with a crash, time-outs where nothing is on its way", { tags: ["long"] }, () => {
    const bounds: Bounds = { variant: "lock", nodes: 3, network: "inbox", timers: "quiet", ...crash };
    isSound(bounds, "holds", 59_785, ["detector.suspected"]);
  });

  it("with twelve time-outs where nothing is on its way: the lock is put away", () => {
    const bounds: Bounds = { variant: "ring-lock", nodes: 3, timers: "quiet", maxTimeouts: 12 };
    isSound(bounds, "unknown", 23_388, putAway);
  });

  it("with deliveries in one order and time-outs at any time", { tags: ["long"] }, () => {
    const { verdict, states, reach } = inOneOrder("lock", {});
    expect([verdict, states]).toEqual(["holds", 688_022]);
    expect(Object.keys(reach.events)).toContain("mutex.entered");
  });

  it("with deliveries in one order and six time-outs: begun anew by who enters again", { tags: ["long"] }, () => {
    const { verdict, states, reach } = inOneOrder("ring-lock", { maxTimeouts: 6 });
    expect([verdict, states]).toEqual(["unknown", 98_224]);
    expect(Object.keys(reach.events)).toEqual(expect.arrayContaining([...putAway, "names.renewed", "mutex.entered"]));
  });
});

describe("random runs", () => {
  it.each([
    ["lock", settings],
    ["ring-lock", putAway],
  ])("of three members with a %s that would have it in two ways, two crashes and recoveries", (variant, events) => {
    const faults = { crashes: 2, recoveries: 2, failureDetector: "last" } as const;
    const options = { workload: { uses: 2, settings: ["one", "other"] } };
    const bounds: Bounds = { variant, nodes: 3, strategy: "swarm", runs: 300, steps: 150, maxTimeouts: 30, ...faults };
    const answer = explored({ ...bounds, options });
    expect([answer.property, answer.runs]).toEqual([null, 300]);
    expect(Object.keys(answer.reach.events)).toEqual(expect.arrayContaining(["mutex.entered", ...events]));
  });
});
