/** Checks leadership transfers to a voter with a better priority. */
import { describe, expect, it } from "vitest";
import { type RaftStage, raftStage } from "../../../../test/protocols/raft-stage.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { type RaftOptions, raftOptions } from "./options.ts";
import { propertiesWith } from "./properties.ts";
import { raft } from "./raft.ts";

const BEATS = 8;
const HEARTBEAT_MS = 75;

/** Makes node 1 lead. Node 0, which has a better priority, was down and is back. */
function displaced(nodes: number, options: Partial<RaftOptions> = {}): RaftStage {
  const priorities = Array.from({ length: nodes }, (_, node) => ({ node, behind: node }));
  const stage = raftStage({ nodes, options: { priorities, handOverBeats: BEATS, ...options }, logged: false });
  stage.settle();
  stage.sim.crash(stage.leader());
  stage.settle();
  expect(stage.leader()).toBe(1);
  return stage;
}

const termOf = ({ sim }: RaftStage, node: NodeId): number => sim.world.state(node).term;
const run = ({ sim }: RaftStage, ms: number): void => sim.run(sim.now + ms);

describe("raft: leadership goes to the voter with the best priority", () => {
  it("after that voter has kept up for some heartbeats, without a timeout or a lost proposal", () => {
    const stage = displaced(3);
    const term = termOf(stage, 1);
    stage.propose(1, "a");
    stage.sim.start(0);
    run(stage, 400);
    expect(stage.leader()).toBe(1); // Node 0 has had all of node 1's entries for a while, but still waits.
    for (let at = 0; at < 40 && stage.sim.world.state(1).role.is === "leader"; at++) {
      stage.propose(1, `x${at}`);
      run(stage, 20);
    }
    stage.settle();
    expect([stage.leader(), termOf(stage, 0)]).toEqual([0, term + 1]);
    const [log, ...others] = stage.logs();
    expect(new Set(others)).toEqual(new Set([log]));
    expect(log?.match(/:x/g)?.length).toBeGreaterThan(10);
    expect(stage.sim.verdict()).toEqual([]);
  });

  it("not without the option, which violates the property", () => {
    const stage = displaced(3, { handOverBeats: 0 });
    stage.sim.start(0);
    run(stage, 10_000);
    expect(stage.leader()).toBe(1);
    const { priorities } = raftOptions.settle({ priorities: [{ node: 1, behind: 1 }] });
    const priority = propertiesWith({ ...raftOptions.settle({}), priorities, handOverBeats: 1 }).find(
      ({ name }) => name === "priority",
    );
    expect((priority as { holds(world: unknown): boolean }).holds(stage.sim.world)).toBe(false);
    expect(raft().properties.map(({ name }) => name)).not.toContain("priority");
  });

  it("not to a voter that answers only now and then", () => {
    const stage = displaced(3);
    stage.sim.start(0);
    const term = termOf(stage, 1);
    for (let at = 0; at < 20; at++) {
      run(stage, 350);
      stage.sim.partition([[0]]);
      run(stage, 100);
      stage.sim.heal();
    }
    expect([stage.leader(), termOf(stage, 1)]).toEqual([1, term]);
    run(stage, 2_000);
    expect(stage.leader()).toBe(0);
  });

  it("not to a learner or to a voter of equal priority", () => {
    for (const options of [{ voters: [1, 2, 3], learners: [0] }, { priorities: [] }] as const) {
      const stage = raftStage({ nodes: 4, options: { handOverBeats: 1, ...options }, logged: false });
      stage.settle();
      const leader = stage.leader();
      run(stage, 5_000);
      expect([stage.leader(), termOf(stage, leader)]).toEqual([leader, 1]);
    }
  });

  it("a leader continues if its successor crashes during the transfer", () => {
    const stage = displaced(3, { handOverBeats: 1 });
    stage.sim.start(0);
    while ((stage.sim.messages.byType.timeoutNow ?? 0) === 0) stage.sim.step();
    stage.sim.crash(0);
    stage.propose(1, "waits");
    const term = termOf(stage, 1);
    stage.settle();
    expect([stage.leader(), termOf(stage, 1)]).toEqual([1, term]);
    expect(stage.logs()[0]).toContain("waits");
  });

  it("less and less often to a voter that only the leader can reach", () => {
    const stage = displaced(5, { handOverBeats: 4 });
    stage.sim.start(0);
    for (const node of [2, 3, 4]) {
      stage.sim.cut(0, node);
      stage.sim.cut(node, 0);
    }
    const asked: number[] = [];
    const end = stage.sim.now + 60_000;
    for (let known = 0; stage.sim.now < end && stage.sim.step(); ) {
      const { timeoutNow = 0 } = stage.sim.messages.byType;
      if (timeoutNow > known) asked.push(stage.sim.now);
      known = timeoutNow;
    }
    const between = asked.slice(1).map((at, index) => Math.round((at - (asked[index] ?? 0)) / HEARTBEAT_MS));
    // Transfers occur after 8, 16, 32 and 64 beats, which is the maximum, with an election each time.
    expect(between).toEqual([20, 27, 42, 75, 75, 75, 75, 74, 76, 74, 76, 74]);
    expect(stage.sim.violations).toEqual([]);
  });
});
