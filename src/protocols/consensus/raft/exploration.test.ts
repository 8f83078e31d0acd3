/** Explores every run of Raft within bounds, with timeouts at any time, and random runs of unbounded Raft. */

import { describe, expect, it } from "vitest";
import { asInFigure8, overAConflict, readElsewhere, withinALease } from "../../../../test/protocols/raft-models.ts";
import { expectStates, reaching } from "../../../../test/protocols/reached.ts";
import { type Exploration, type ExploreOptions, explore } from "../../../check/explore.ts";
import { walk } from "../../../check/search/walks.ts";
import type { NodeId, Property, Protocol, World } from "../../../core/protocol.ts";
import { snapshotOf } from "../family/replicated-log.ts";
import { boundedRaft } from "./bounded.ts";
import { safety } from "./properties.ts";
import { type Raft, raft } from "./raft.ts";

const propose = (client: NodeId): Raft["command"] => ({
  type: "propose",
  command: { client, sequence: 1, operation: "x" },
});
/** Changes from three voters to two, and a learner. */
const change: Raft["command"] = { type: "reconfigure", voters: [0, 1], learners: [2] };
/** While this change is joint, node 0 is a majority of the new voters. */
const toNodeZero: Raft["command"] = { type: "reconfigure", voters: [0], learners: [1, 2] };

type Asks = Readonly<Record<NodeId, readonly Raft["command"][]>>;
type Bounds = Partial<ExploreOptions<Raft>>;

const three = { nodes: [0, 1, 2], network: "fifo", timers: "free", begin: "together" } as const;

function exploring(asked: Asks, bounds: Bounds = {}, ...reached: string[]): Exploration<Raft> {
  const asks = (node: NodeId) => asked[node] ?? [];
  return reaching(explore<Raft>({ protocol: boundedRaft(), ...three, asks, ...bounds }), "led", ...reached);
}

/** The limit on states for a search that does not fit into the memory of a small machine. */
const MOST_STATES = 2_000_000;

const deeds = ({ path }: Exploration<Raft>): string[] =>
  path.map(({ move }) => {
    const what = move.kind === "receive" ? ` ${move.message.type} from ${move.from}` : "";
    return `${move.node} ${move.kind}${what}`;
  });

// Only runs with more timeouts than the bound are cut off, so the verdict is "unknown" if no property is violated.
describe("raft: every run of three nodes in two terms", () => {
  it("two candidates", () => {
    expectStates(exploring({}, { maxTimeouts: 2 }), "unknown", 9_382);
  });

  it("all nodes are candidates in both terms: complete", { tags: ["long"] }, () => {
    expectStates(exploring({}), "holds", 403_115);
  });

  it("all nodes are candidates in both terms, and a command is proposed: complete", { tags: ["long"] }, () => {
    expectStates(exploring({ 0: [propose(0)] }, {}, "decided"), "holds", 1_289_138);
  });

  it("two candidates and two proposals", { tags: ["larger"] }, () => {
    const found = exploring({ 0: [propose(0)], 1: [propose(1)] }, { maxTimeouts: 2 }, "decided");
    expectStates(found, "unknown", 416_187);
  });

  it("two candidates, a proposal, and a node that crashes at any time and recovers", { tags: ["long"] }, () => {
    const bounds = { maxTimeouts: 2, crashes: 1, recoveries: 1 };
    const found = exploring({ 0: [propose(0)] }, bounds, "decided", "replay voted", "replay appended");
    expectStates(found, "unknown", 580_449);
  });

  it("two candidates, a proposal, and a membership change", { tags: ["long"] }, () => {
    const found = exploring({ 0: [change, propose(0)] }, { maxTimeouts: 2 }, "decided", "reconfigured");
    expectStates(found, "unknown", 267_047);
  });

  it("two candidates, a membership change, and a node that crashes at any time and recovers", {
    tags: ["larger"],
  }, () => {
    const bounds = { maxTimeouts: 2, crashes: 1, recoveries: 1 };
    const found = exploring({ 0: [change] }, bounds, "reconfigured", "replay voted", "replay appended");
    expectStates(found, "unknown", 572_508);
  });

  it("two candidates, a proposal, a membership change, and a node that crashes at any time and recovers", {
    tags: ["larger"],
  }, () => {
    const bounds = { maxTimeouts: 2, crashes: 1, recoveries: 1, maxStates: MOST_STATES };
    const found = exploring({ 0: [change, propose(0)] }, bounds, "decided", "reconfigured", "replay appended");
    expectStates(found, "unknown", MOST_STATES);
  });
});

/** Two nodes each propose a command, with a membership change, two timeouts, and a crash with a recovery. */
describe("raft: two terms, two entries, a membership change, a crash and a recovery", () => {
  interface Marked {
    isBack?: boolean;
  }
  const marked = (node: NodeId, { state }: World<Raft["state"]>): Raft["state"] & Marked => state(node);
  const isChanged = ({ configuration: { index, outgoing }, commitIndex }: Raft["state"]): boolean =>
    index > 0 && index <= commitIndex && outgoing === null;
  const terms = ({ log, commitIndex }: Raft["state"]): number =>
    new Set(log.entries.slice(0, commitIndex).flatMap(({ type, term }) => (type === "command" ? [term] : []))).size;
  const sought = (name: string, holds: (state: Raft["state"], isAnyBack: boolean) => boolean): Property<Raft> => ({
    name,
    claim: "some run reaches this state",
    when: "sometimes",
    holds: (world) =>
      world.alive.some((node) =>
        holds(
          world.state(node),
          world.alive.some((each) => marked(each, world).isBack === true),
        ),
      ),
  });
  const goals = [
    sought("the change, after a recovery", (state, isAnyBack) => isAnyBack && isChanged(state)),
    sought("commands of both terms, after a recovery", (state, isAnyBack) => isAnyBack && terms(state) === 2),
    sought("all of it", (state, isAnyBack) => isAnyBack && isChanged(state) && terms(state) === 2),
  ];

  /** Marks nodes that have replayed their journal, to distinguish events before and after the restart. */
  function markingThoseBack(whole: Protocol<Raft>): Protocol<Raft> {
    const replay = Object.entries(whole.replay ?? {}).map(([type, take]) => [
      type,
      (state: Raft["state"] & Marked, record: never) => {
        (take as (state: Raft["state"], record: never) => void)(state, record);
        state.isBack = true;
      },
    ]);
    return { ...whole, replay: Object.fromEntries(replay) as NonNullable<Protocol<Raft>["replay"]> };
  }

  const asked: Asks = { 0: [propose(0), change], 1: [propose(1)] };
  const options: ExploreOptions<Raft> = {
    protocol: markingThoseBack(boundedRaft()),
    ...three,
    asks: (node) => asked[node] ?? [],
    properties: [...safety, ...goals],
    maxTimeouts: 2,
    crashes: 1,
    recoveries: 1,
  };
  const reached = ({ witnesses }: { witnesses: Exploration<Raft>["witnesses"] }): string[] =>
    witnesses.map(({ property, path }) => `${property.name}: ${path.length} moves`);

  it("holds in the first 60,000 states", { tags: ["long"] }, () => {
    const found = explore<Raft>({ ...options, maxStates: 60_000 });
    expect([found.property, found.depth, reached(found)]).toEqual([null, 11, []]);
  });

  it("holds in swarm runs, which reach all of these", { tags: ["long"] }, () => {
    const found = walk<Raft>({ ...options, strategy: "swarm", seed: 1, runs: 300 });
    expect([found.property, reached(found)]).toEqual([
      null,
      [
        "the change, after a recovery: 39 moves",
        "commands of both terms, after a recovery: 45 moves",
        "all of it: 45 moves",
      ],
    ]);
  });
});

describe("raft: reads by lease, with pre-votes and check-quorum", () => {
  const read: Raft["command"] = { type: "read", read: 1 };

  /** Explores a lease. Nodes 0 and 2 have no link to each other unless `isWhole`. */
  function withALease(asks: readonly Raft["command"][], bounds: Bounds, isWhole = false): Exploration<Raft> {
    const protocol = withinALease(raft({ leaseReads: true, maxBatchEntries: 1 }), isWhole ? [] : [0, 2]);
    const found = explore<Raft>({
      protocol,
      ...three,
      network: "bag",
      maxTimeouts: 2,
      asks: (node) => (node === 0 ? asks : []),
      ...bounds,
    });
    return reaching(found, "led", "readable", "receive preVote", "receive vote");
  }
  const reached = ({ witnesses }: Exploration<Raft>): string[] => witnesses.map(({ property }) => property.name);

  it("are linearizable in all runs of 16 moves: as many as a vote against a promise needs", () => {
    const found = withALease([read], { maxDepth: 16 });
    expect([found.property?.name, found.verdict, reached(found)]).toEqual([undefined, "unknown", ["a read by lease"]]);
  });

  it("are linearizable in every run, until more timers expire", { tags: ["long"] }, () => {
    const found = withALease([read], {});
    expect([found.property?.name, found.verdict, reached(found)]).toEqual([undefined, "unknown", ["a read by lease"]]);
  });

  it("are linearizable in every run with a transfer of leadership", { tags: ["long"] }, () => {
    const found = withALease([{ type: "transfer", to: 1 }, read], { network: "fifo" }, true);
    expect([found.property?.name, found.verdict]).toEqual([undefined, "unknown"]);
  });
});

describe("raft: reads by a round of messages", () => {
  it("return all that any node knew when they were requested", () => {
    const found = explore<Raft>({
      protocol: readElsewhere(boundedRaft({ tellsCommit: true })),
      ...three,
      maxTimeouts: 1,
      asks: (node) => (node === 1 ? [propose(1)] : []),
    });
    expect(reaching(found, "decided", "readable").property?.name).toBeUndefined();
  });

  it("do so while the leader's configuration is joint: its new voters alone confirm nothing", () => {
    const asked: Asks = { 0: [toNodeZero], 1: [propose(1)] };
    const found = explore<Raft>({
      protocol: readElsewhere(boundedRaft({ tellsCommit: true })),
      ...three,
      maxTimeouts: 1,
      maxDepth: 15,
      asks: (node) => asked[node] ?? [],
    });
    expect(reaching(found, "decided", "readable").property?.name).toBeUndefined();
  });
});

describe("raft: successive leaders", () => {
  const following = (asked: Asks, protocol: Protocol<Raft>, maxTimeouts = 1, maxDepth = 13) =>
    explore<Raft>({
      protocol,
      ...three,
      maxTimeouts,
      maxDepth,
      properties: safety,
      asks: (node) => asked[node] ?? [],
    });

  it("the next leader's reads see the entries that the previous leader committed", () => {
    const asked: Asks = { 0: [propose(0)], 1: [{ type: "read", read: 1 }] };
    const found = reaching(following(asked, readElsewhere(boundedRaft())), "led", "decided", "readable");
    expect(found.property?.name).toBeUndefined();
  });

  it("a membership change that the next leader lacks is undone", () => {
    const found = reaching(following({ 0: [change] }, readElsewhere(boundedRaft())), "led", "reconfigured");
    expect(found.property?.name).toBeUndefined();
  });

  it("an entry of an earlier term is committed only with one of the leader's own term", () => {
    const found = following({}, asInFigure8(boundedRaft({ maxBatchEntries: 1 }, 5)), 2, 14);
    expect(reaching(found, "led").property?.name).toBeUndefined();
  });

  it("a membership change ends once both majorities have committed it", () => {
    const found = following({ 0: [propose(0), toNodeZero] }, readElsewhere(boundedRaft({ maxBatchEntries: 1 })));
    expect(reaching(found, "led", "decided", "reconfigured").property?.name).toBeUndefined();
  });

  it("a snapshot replaces entries that conflict with it", () => {
    const asked: Asks = { 0: [{ type: "compact", index: 2, snapshot: snapshotOf("s") }, propose(0)] };
    const found = reaching(following(asked, overAConflict(boundedRaft({ keptEntries: 0 }))), "installed", "decided");
    expect(found.property?.name).toBeUndefined();
  });
});

describe("raft: violations without an assumption", () => {
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

  it("leader completeness without the check of the log: the node that times out first is elected, as in a lecture", () => {
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

describe("raft: random runs of unbounded Raft, with all faults", () => {
  const asked: Asks = {
    0: [propose(0), change, { type: "compact", index: 2, snapshot: snapshotOf("s") }],
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

  it.each(["random", "pct", "swarm"] as const)("safety holds in %s runs", (strategy) => {
    expect(walked(strategy, 4).property).toBeNull();
  });

  it.each(["random", "pct", "swarm"] as const)("safety holds in many %s runs", { tags: ["larger"] }, (strategy) => {
    expect(reaching(walked(strategy, 100), "decided").property).toBeNull();
  });
});
