/** Raft in every run within bounds, time-outs at any time; and in random runs of the whole. */
import { describe, expect, it } from "vitest";
import { reaching } from "../../../../test/protocols/reached.ts";
import { type Exploration, type ExploreOptions, explore } from "../../../check/explore.ts";
import { walk } from "../../../check/search/walks.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { boundedRaft } from "./bounded.ts";
import { safety } from "./properties.ts";
import { type Raft, raft } from "./raft.ts";

const propose = (client: NodeId): Raft["command"] => ({
  type: "propose",
  command: { client, sequence: 1, operation: "x" },
});
/** From three voters to two, and a learner. */
const change: Raft["command"] = { type: "reconfigure", voters: [0, 1], learners: [2] };

type Asks = Readonly<Record<NodeId, readonly Raft["command"][]>>;
type Bounds = Partial<ExploreOptions<Raft>>;

const three = { nodes: [0, 1, 2], network: "fifo", timers: "free", begin: "together" } as const;

function exploring(asked: Asks, bounds: Bounds = {}, ...reached: string[]): Exploration<Raft> {
  const asks = (node: NodeId) => asked[node] ?? [];
  return reaching(explore<Raft>({ protocol: boundedRaft(), ...three, asks, ...bounds }), "led", ...reached);
}

/** As far as one goes that does not end within the memory of a small machine. */
const MOST_STATES = 2_000_000;

const deeds = ({ path }: Exploration<Raft>): string[] =>
  path.map(({ move }) => {
    const what = move.kind === "receive" ? ` ${move.message.type} from ${move.from}` : "";
    return `${move.node} ${move.kind}${what}`;
  });

/** More time-outs than the bound are cut off, and nothing else: what is left holds. */
const held = (found: Exploration<Raft>) => ({ property: found.property, states: found.states, cut: found.verdict });

describe("raft: every run of three nodes in two terms", () => {
  it("two stand", () => {
    expect(held(exploring({}, { maxTimeouts: 2 }))).toEqual({ property: null, states: 9_382, cut: "unknown" });
  });

  it("all stand, in both terms: not cut off at all", { tags: ["long"] }, () => {
    expect(exploring({})).toMatchObject({ verdict: "holds", states: 403_115 });
  });

  it("all stand, in both terms, and a command is proposed: not cut off at all", { tags: ["long"] }, () => {
    expect(exploring({ 0: [propose(0)] }, {}, "decided")).toMatchObject({ verdict: "holds", states: 1_289_138 });
  });

  it("two stand, and two propose", { tags: ["long"] }, () => {
    const found = exploring({ 0: [propose(0)], 1: [propose(1)] }, { maxTimeouts: 2 }, "decided");
    expect(held(found)).toEqual({ property: null, states: 416_187, cut: "unknown" });
  });

  it("two stand, one proposes, and a node crashes at any time and comes back", { tags: ["long"] }, () => {
    const bounds = { maxTimeouts: 2, crashes: 1, recoveries: 1 };
    const found = exploring({ 0: [propose(0)] }, bounds, "decided", "replay voted", "replay appended");
    expect(held(found)).toEqual({ property: null, states: 580_449, cut: "unknown" });
  });

  it("two stand, one proposes, and the members change", { tags: ["long"] }, () => {
    const found = exploring({ 0: [change, propose(0)] }, { maxTimeouts: 2 }, "decided", "reconfigured");
    expect(held(found)).toEqual({ property: null, states: 267_047, cut: "unknown" });
  });

  it("two stand, the members change, and a node crashes at any time and comes back", { tags: ["long"] }, () => {
    const bounds = { maxTimeouts: 2, crashes: 1, recoveries: 1 };
    const found = exploring({ 0: [change] }, bounds, "reconfigured", "replay voted", "replay appended");
    expect(held(found)).toEqual({ property: null, states: 572_508, cut: "unknown" });
  });

  it("two stand, one proposes, the members change, and a node crashes at any time and comes back", {
    tags: ["long"],
  }, () => {
    const bounds = { maxTimeouts: 2, crashes: 1, recoveries: 1, maxStates: MOST_STATES };
    const found = exploring({ 0: [change, propose(0)] }, bounds, "decided", "reconfigured", "replay appended");
    expect(held(found)).toEqual({ property: null, states: MOST_STATES, cut: "unknown" });
  });
});

describe("raft: what breaks without its assumption", () => {
  it("election safety without the journal: a node votes twice in a term", () => {
    const found = exploring({}, { maxTimeouts: 2, crashes: 1, recoveries: 1, journal: "lost" });
    expect([found.verdict, found.property?.name]).toEqual(["violated", "election safety"]);
    expect(deeds(found)).toEqual([
      "0 start",
      "1 start",
      "2 start",
      "0 timeout",
      "1 receive requestVote from 0",
      "0 receive vote from 1",
      "1 crash",
      "1 start",
      "1 timeout",
      "2 receive requestVote from 1",
      "1 receive vote from 2",
    ]);
  });

  it("leader completeness without the check of the log: as a lecture has it, the node that noticed first is elected", () => {
    const protocol = boundedRaft({ checksLog: false });
    const found = exploring({ 0: [propose(0)] }, { protocol, maxTimeouts: 2 });
    expect([found.verdict, found.property?.name]).toEqual(["violated", "leader completeness"]);
    expect(deeds(found)).toEqual([
      "0 start",
      "1 start",
      "2 start",
      "0 command",
      "0 timeout",
      "1 receive requestVote from 0",
      "0 receive vote from 1",
      "1 receive appendEntries from 0",
      "0 receive appended from 1",
      "1 receive appendEntries from 0",
      "0 receive appended from 1",
      "2 receive requestVote from 0",
      "2 timeout",
      "1 receive requestVote from 2",
      "2 receive vote from 1",
    ]);
  });
});

describe("raft: random runs of the whole, with all faults", () => {
  const asked: Asks = {
    0: [propose(0), change, { type: "compact", index: 2, snapshot: "s" }],
    1: [propose(1), { type: "read", read: 1 }, { type: "transfer", to: 0 }],
    2: [propose(2), { type: "reconfigure", voters: [0, 1, 2], learners: [] }],
  };

  const walked = (strategy: "random" | "pct" | "swarm", runs: number) =>
    reaching(
      walk<Raft>({
        protocol: raft({ maxBatchEntries: 1, keptEntries: 0, checkQuorum: strategy !== "pct" }),
        ...three,
        network: "bag",
        asks: (node) => asked[node] ?? [],
        properties: safety,
        crashes: 2,
        recoveries: 2,
        losses: 2,
        duplications: 2,
        maxTimeouts: 60,
        strategy,
        seed: 1,
        runs,
      }),
      "led",
    );

  it.each(["random", "pct", "swarm"] as const)("safety holds in those of %s", (strategy) => {
    expect(walked(strategy, 4).property).toBeNull();
  });

  it.each(["random", "pct", "swarm"] as const)("safety holds in many of %s", { tags: ["long"] }, (strategy) => {
    expect(reaching(walked(strategy, 100), "decided").property).toBeNull();
  });
});
