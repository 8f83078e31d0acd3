/** Whole members with one lock: every run of two and of three within bounds, and many random ones beyond. */
import { describe, expect, it } from "vitest";
import { type ExploreOptions, explore as exploreModel } from "../../../check/explore.ts";
import type { Property, Protocol, Vocabulary } from "../../../core/protocol.ts";
import type { Experiment } from "../../../experiment/experiment.ts";
import { explore } from "../../../experiment/explore.ts";
import type { Embedded } from "../../entry.ts";
import { variantNamed } from "../../index.ts";
import { epochOf } from "../../mutex/family/fencing-tokens.ts";
import { mutualExclusions } from "../../mutexes.ts";
import { type MemberOptions, member } from "./member.ts";

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
  const unique = "mutex: tokens are unique";
  const kept = uses.slice(0, 1);
  expect(of("served-lock")).toEqual([...always, "mutex: ME1 safety", unique, ...grants, ...kept]);
  expect(of("served-lock-timed")).toEqual([...always, unique, "messages are meant", ...uses]);
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

const served = ["election.elected", "election.deposed", "names.putAway", "served.resumes"];
const electedServer = mutualExclusions["elected-server"]?.embedded as Embedded;

/** The same member with a lock that lacks something. */
function lacking(lock: Partial<Embedded>, isTimed: boolean, options: MemberOptions, maxTimeouts: number) {
  const names = { idleSweeps: 1 };
  const make = member({ lock: { ...electedServer, ...lock }, names, isTimed }) as Embedded["make"];
  const protocol = make(options);
  const properties = protocol.properties.filter(({ when }) => when === "always");
  return exploring(protocol, properties, { nodes: [0, 1], maxTimeouts });
}

describe("two members with a lock that the leader of their epoch serves, every run", () => {
  it("in which any of them may serve next, and may be deposed", () => {
    isSound({ variant: "served-lock", nodes: 2 }, "holds", 49_698, served);
  });

  it("that would have the lock in two ways: a server that gives way ends its epoch", { tags: ["long"] }, () => {
    const bounds: Bounds = { variant: "served-lock", nodes: 2, options: twoWays };
    isSound(bounds, "holds", 207_960, [...served, "names.gaveWay", "mutex.exhausted"]);
  });

  it("that use it twice", { tags: ["long"] }, () => {
    isSound({ variant: "served-lock", nodes: 2, options: twice }, "holds", 718_146, served);
  });

  it("with four time-outs, a crash and a recovery", { tags: ["long"] }, () => {
    const bounds: Bounds = { variant: "served-lock", nodes: 2, maxTimeouts: 4, ...crashAndRecovery };
    isSound(bounds, "unknown", 260_721, [...served, ...recovered]);
  });

  it("with four time-outs, those of leases among them", () => {
    isSound({ variant: "served-lock-timed", nodes: 2, maxTimeouts: 4 }, "unknown", 18_800, ["mutex.lost"]);
  });

  it("with five", { tags: ["long"] }, () => {
    const bounds: Bounds = { variant: "served-lock-timed", nodes: 2, maxTimeouts: 5 };
    isSound(bounds, "unknown", 100_178, [...served, "mutex.lost"]);
  });

  it("grants under two epochs are among them, and under one epoch before a lock is put away and after", () => {
    const protocol = variantNamed("names", "served-lock").model({ ...twice });
    const { witnesses } = exploring(protocol, [underTwoEpochs, begunAnew], { nodes: [0, 1], maxTimeouts: 6 });
    expect(witnesses.map(({ property }) => property.name)).toEqual(["under two epochs", "begun anew"]);
  });

  it("tokens come twice if a lock that is opened is not told which its server has given", () => {
    const { make } = electedServer;
    const forgetful: Embedded["make"] = (options) => {
      const lock = make(options);
      return { ...lock, command: { ...lock.command, resume() {} } };
    };
    const { verdict, property } = lacking({ make: forgetful }, true, twice, 8);
    expect([verdict, property?.name]).toEqual(["violated", "mutex: tokens are unique"]);
  });

  it("and if a server that gives way goes on in its epoch", { tags: ["long"] }, () => {
    const wires = (options: object) => ({ ...electedServer.wires(options), mutex: {} });
    const { verdict, property } = lacking({ wires }, true, { workload: { uses: 2, settings: ["one", "other"] } }, 5);
    expect([verdict, property?.name]).toEqual(["violated", "mutex: tokens are unique"]);
  });
});

interface Entries {
  readonly epochs: readonly number[];
  /** The epoch of the last entry under the name, in its earlier life. */
  readonly before: number | null;
  readonly isAnew: boolean;
}

/** The epochs in which a node has entered. */
const entries = {
  empty: { epochs: [], before: null, isAnew: false } as Entries,
  after(known: Entries, { body }: { body: { type: string; token?: number } }): Entries {
    const { epochs, before } = known;
    const [last = null] = epochs;
    if (body.type === "retired") return { ...known, before: last };
    if (body.type !== "entered") return known;
    const epoch = epochOf(body.token as number);
    return { epochs: [epoch, ...epochs], before, isAnew: known.isAnew || epoch === before };
  },
};
const sometimes = (name: string, holds: (all: readonly Entries[]) => boolean) =>
  ({
    ...{ name, claim: name, when: "sometimes", history: entries },
    holds: ({ nodes, history }: { nodes: readonly number[]; history(node: number): Entries }) =>
      holds(nodes.map((node) => history(node))),
  }) as never as Property<Vocabulary>;
const underTwoEpochs = sometimes("under two epochs", (all) => new Set(all.flatMap(({ epochs }) => epochs)).size > 1);
const begunAnew = sometimes("begun anew", (all) => all.some(({ isAnew }) => isAnew));

function exploring(
  protocol: Protocol<Vocabulary>,
  properties: readonly Property<Vocabulary>[],
  bounds: Pick<ExploreOptions<Vocabulary>, "nodes"> & Partial<ExploreOptions<Vocabulary>>,
) {
  const system = { network: "fifo", timers: "free", begin: "together" } as const;
  return exploreModel<Vocabulary>({ protocol, properties, ...system, ...bounds });
}

/** One node takes all that has arrived before the next does; timers run out whenever they like. */
function inOneOrder(variant: string, bounds: Partial<ExploreOptions<Vocabulary>>) {
  const protocol = variantNamed("names", variant).model();
  const properties = protocol.properties.filter(({ when }) => when === "always");
  return exploring(protocol, properties, { nodes: [0, 1, 2], delays: 0, counters: ["round"], ...bounds });
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

  it("with a lock that is served, and six time-outs where nothing is on its way", { tags: ["long"] }, () => {
    const bounds: Bounds = { variant: "served-lock", nodes: 3, timers: "quiet", maxTimeouts: 6 };
    isSound(bounds, "unknown", 179_125, served);
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
    ["served-lock", [...settings, ...served]],
  ])("of three members with a %s that would have it in two ways, two crashes and recoveries", (variant, events) => {
    const faults = { crashes: 2, recoveries: 2, failureDetector: "last" } as const;
    const options = { workload: { uses: 2, settings: ["one", "other"] } };
    const bounds: Bounds = { variant, nodes: 3, strategy: "swarm", runs: 300, steps: 150, maxTimeouts: 30, ...faults };
    const answer = explored({ ...bounds, options });
    expect([answer.property, answer.runs]).toEqual([null, 300]);
    expect(Object.keys(answer.reach.events)).toEqual(expect.arrayContaining(["mutex.entered", ...events]));
  });
});
