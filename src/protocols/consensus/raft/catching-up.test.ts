/** Checks that new voters catch up with the log before they count, or are refused. */

import { describe, expect, it } from "vitest";
import { type RaftStage, raftStage } from "../../../../test/protocols/raft-stage.ts";
import { reaching } from "../../../../test/protocols/reached.ts";
import { explore } from "../../../check/explore.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { simulation } from "../../../sim/simulation.ts";
import { snapshotOf, textOf } from "../family/replicated-log.ts";
import { boundedRaft } from "./bounded.ts";
import type { RaftOptions } from "./options.ts";
import { safetyWith } from "./properties.ts";
import { type Raft, raft } from "./raft.ts";

const NODES = [0, 1, 2, 3, 4];
/** Sending an entry to a node that lacks it takes a round trip of 20 ms. */
const options: Partial<RaftOptions> = {
  voters: [0, 1, 2],
  priorities: NODES.map((node) => ({ node, behind: node })),
  catchUpRounds: 3,
  maxBatchEntries: 1,
  maxInFlight: 1,
};

/** Makes node 0 lead, with a log of this many entries. */
function staged(entries: number, changed: Partial<RaftOptions> = {}): RaftStage {
  const stage = raftStage({ nodes: NODES.length, options: { ...options, ...changed }, logged: false });
  stage.settle();
  for (let at = 0; at < entries; at++) {
    stage.propose(0, `x${at}`);
    stage.sim.run(stage.sim.now + 25);
  }
  expect(stage.leader()).toBe(0);
  return stage;
}

const change = ({ sim }: RaftStage, at: NodeId, ...voters: NodeId[]): void =>
  sim.command(at, { type: "reconfigure", voters, learners: [] });
const votersOf = ({ sim }: RaftStage, node: NodeId): NodeId[] => sim.world.state(node).configuration.voters;
const refusals = ({ sim }: RaftStage, node: NodeId): string[] =>
  sim.events(node).flatMap((event) => (event.type === "changeRefused" ? [`${event.voters}: ${event.reason}`] : []));
const committed = ({ sim }: RaftStage): number => sim.world.state(0).commitIndex;

describe("raft: new voters catch up first (thesis §4.2.1)", () => {
  it("they count once they have the log; until then the old voters continue", () => {
    const stage = staged(20);
    change(stage, 0, 0, 1, 2, 3, 4);
    stage.sim.crash(2); // Five voters, two with empty logs, could commit nothing.
    const before = committed(stage);
    stage.propose(0, "meanwhile");
    stage.sim.run(stage.sim.now + 100);
    expect([committed(stage) - before, votersOf(stage, 0)]).toEqual([1, [0, 1, 2]]);
    stage.settle();
    expect(votersOf(stage, 0)).toEqual(NODES);
    expect(new Set(stage.logs()).size).toBe(1);
    expect(stage.logs()[0]).toContain("1:x19 1:meanwhile 1:{0,1,2→0,1,2,3,4} 1:{0,1,2,3,4}");
    expect(stage.sim.violations).toEqual([]);
  });

  it("without catching up nothing is committed until a new voter has the log", () => {
    const stage = staged(20, { catchUpRounds: 0 });
    change(stage, 0, 0, 1, 2, 3, 4);
    stage.sim.crash(2);
    const before = committed(stage);
    stage.propose(0, "waits");
    stage.sim.run(stage.sim.now + 100);
    expect(committed(stage)).toBe(before);
  });

  it("a round that takes longer than the shortest election timeout is followed by a shorter one", () => {
    const stage = staged(40);
    change(stage, 0, 0, 1, 2, 3);
    const rounds = new Set<string>();
    for (let at = 0; at < 16; at++) {
      stage.propose(0, `y${at}`);
      stage.sim.run(stage.sim.now + 100);
      const { role } = stage.sim.world.state(0);
      if (role.is === "leader" && role.catchUp !== null) rounds.add(`${role.catchUp.round}: ${role.catchUp.target}`);
    }
    expect([...rounds]).toEqual(["1: 41", "2: 50"]);
    expect(votersOf(stage, 0)).toEqual([0, 1, 2, 3]);
  });

  it("a node that falls behind as fast as it catches up is refused after `catchUpRounds`, and the requester is notified", () => {
    const stage = staged(30);
    change(stage, 1, 0, 1, 2, 3);
    for (let at = 0; at < 220; at++) {
      stage.propose(0, `y${at}`);
      stage.sim.run(stage.sim.now + 20); // The leader sends them as fast as node 3 accepts them.
    }
    expect([refusals(stage, 0), refusals(stage, 1), refusals(stage, 2)]).toEqual([
      ["0,1,2,3: too slow"],
      ["0,1,2,3: too slow"],
      [],
    ]);
    expect(votersOf(stage, 0)).toEqual([0, 1, 2]);
    const known = stage.sim.world.state(3).commitIndex;
    stage.settle();
    expect(stage.sim.world.state(3).commitIndex).toBe(known); // Node 3 is not a member, and receives nothing.
    change(stage, 1, 0, 1, 2, 3); // No other change is proposed now.
    stage.sim.run(stage.sim.now + 8_000);
    expect(votersOf(stage, 3)).toEqual([0, 1, 2, 3]);
  });

  it("a node that does not answer is refused, and another change is possible", () => {
    const stage = staged(3);
    stage.sim.crash(4);
    change(stage, 0, 0, 1, 2, 3, 4);
    change(stage, 0, 0, 1, 2, 3); // A different change is in progress.
    stage.settle();
    expect([refusals(stage, 0), votersOf(stage, 0)]).toEqual([["0,1,2,3,4: no progress"], [0, 1, 2]]);
    change(stage, 0, 0, 1, 2, 3);
    stage.settle();
    expect(votersOf(stage, 3)).toEqual([0, 1, 2, 3]);
  });

  it("learners with the log become voters at once, and leaving nodes need not catch up", () => {
    const stage = staged(10, { learners: [3, 4] });
    change(stage, 0, 0, 1, 3);
    expect(stage.logs()[0]).toContain("1:x9 1:{0,1,2→0,1,3}");
    stage.settle();
    change(stage, 0, 0, 1);
    expect(stage.logs()[0]).toContain("1:{0,1,3→0,1}");
  });

  it("a new voter may receive the snapshot", () => {
    const stage = staged(20, { keptEntries: 0 });
    stage.sim.command(0, { type: "compact", index: 21, snapshot: snapshotOf("all of the twenty", 2) });
    change(stage, 0, 0, 1, 2, 3);
    stage.settle();
    expect([refusals(stage, 0), votersOf(stage, 3)]).toEqual([[], [0, 1, 2, 3]]);
    expect(textOf(stage.sim.world.state(3).snapshot.chunks)).toBe("all of the twenty");
  });

  it("catching up ends with its leader, and the next leader gets the request again", () => {
    const stage = staged(30);
    change(stage, 0, 0, 1, 2, 3);
    stage.sim.run(stage.sim.now + 100);
    stage.sim.crash(0);
    stage.settle();
    stage.settle();
    const next = stage.leader();
    expect([next, votersOf(stage, next)]).toEqual([1, [0, 1, 2]]);
    change(stage, 1, 0, 1, 2, 3);
    stage.settle();
    stage.settle();
    expect([votersOf(stage, 1), stage.sim.violations]).toEqual([[0, 1, 2, 3], []]);
  });
});

describe("raft: catch-up as a property", () => {
  const asked = safetyWith({ catchUpRounds: 1 });

  it("is violated without catching up", () => {
    const sim = simulation<Raft>({
      protocol: { ...raft({ ...options, catchUpRounds: 0 }), properties: asked },
      nodes: NODES,
      seed: 1,
      delayMs: 10,
    });
    for (const node of NODES) sim.start(node);
    sim.run(1_000);
    sim.command(0, { type: "reconfigure", voters: NODES, learners: [] });
    expect(sim.violations.map(({ property }) => property)).toEqual(["catch-up"]);
  });

  /** Explores two voters and a node that is to become a voter. */
  const explored = (catchUpRounds: number, crashes: number) =>
    explore<Raft>({
      protocol: { ...boundedRaft({ voters: [0, 1], catchUpRounds }, 1 + crashes), properties: asked },
      nodes: [0, 1, 2],
      network: "fifo",
      timers: "free",
      begin: "together",
      asks: (node) => (node === 0 ? [{ type: "reconfigure", voters: [0, 1, 2], learners: [] }] : []),
      maxTimeouts: 1 + crashes,
      crashes,
      recoveries: crashes,
    });

  it("holds in every run of one timeout, and is violated in some without catching up", () => {
    const found = reaching(explored(1, 0), "led", "reconfigured");
    expect([found.property, found.states]).toEqual([null, 81]);
    expect(explored(0, 0)).toMatchObject({ verdict: "violated", property: { name: "catch-up" } });
  });

  it("holds in every run of two timeouts with a crash and a recovery", { tags: ["long"] }, () => {
    const found = reaching(explored(1, 1), "led", "reconfigured", "replay appended");
    expect([found.property, found.states]).toEqual([null, 49_307]);
  });
});
