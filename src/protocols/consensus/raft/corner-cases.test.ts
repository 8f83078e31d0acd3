/**
 * Checks known pitfalls of Raft implementations: reads, leases, bounds, members, snapshots, and figure 7 of the paper.
 */

import { describe, expect, it } from "vitest";
import { type RaftStage, raftStage } from "../../../../test/protocols/raft-stage.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { type Stimulus, step } from "../../../core/step.ts";
import { simulation } from "../../../sim/simulation.ts";
import { snapshotOf } from "../family/replicated-log.ts";
import type { RaftOptions } from "./options.ts";
import { type Raft, raft } from "./raft.ts";

const inOrder = (nodes: number): Partial<RaftOptions> => ({
  priorities: Array.from({ length: nodes }, (_, node) => ({ node, behind: node })),
});

function settled(nodes: number, options: Partial<RaftOptions> = {}): RaftStage {
  const stage = raftStage({ nodes, options: { ...inOrder(nodes), ...options } });
  stage.settle();
  expect(stage.leader()).toBe(0);
  return stage;
}

const isReadable = ({ sim }: RaftStage, node: NodeId, read: number): boolean =>
  sim.events(node).some((event) => event.type === "readable" && event.read === read);

describe("raft: reads", () => {
  /**
   * Makes node 0 lead, then cuts it off. A different node then leads and has committed a command that node 0 does not
   * know of.
   */
  function deposed(options: Partial<RaftOptions>, rate = 1): RaftStage {
    const stage = settled(3, options);
    stage.sim.clockRate(0, rate);
    stage.sim.partition([[0]]);
    while (stage.leader() === 0) stage.sim.run(stage.sim.now + 10);
    stage.propose(stage.leader(), "new");
    stage.sim.run(stage.sim.now + 30);
    expect(stage.sim.world.state(stage.leader()).commitIndex).toBeGreaterThan(stage.sim.world.state(0).commitIndex);
    return stage;
  }

  it("a deposed leader that does not know it answers no read", () => {
    const stage = deposed({ checkQuorum: false });
    expect(stage.sim.world.state(0).role.is).toBe("leader");
    stage.sim.command(0, { type: "read", read: 1 });
    stage.sim.run(stage.sim.now + 500);
    expect(isReadable(stage, 0, 1)).toBe(false);
  });

  it("a lease expires before another node can be elected, if clocks keep to the margin", () => {
    const stage = deposed({ leaseReads: true, maxElectionMs: 330 }, 0.95);
    stage.sim.command(0, { type: "read", read: 1 });
    expect(isReadable(stage, 0, 1)).toBe(false);
  });

  it("a lease read is stale if the leader's clock is slower than the margin allows", () => {
    const stage = deposed({ leaseReads: true }, 0.1);
    stage.sim.command(0, { type: "read", read: 1 });
    expect(isReadable(stage, 0, 1)).toBe(true);
  });

  it("a read at a leader that has committed nothing is answered after its first commit, without a retry", () => {
    const stage = raftStage({ nodes: 3, options: inOrder(3) });
    const { sim } = stage;
    while (sim.world.state(0).role.is !== "leader") sim.run(sim.now + 1);
    expect(sim.world.state(0).commitIndex).toBe(0);
    sim.command(0, { type: "read", read: 1 });
    expect(isReadable(stage, 0, 1)).toBe(false);
    sim.run(sim.now + 200);
    expect(sim.world.state(0).commitIndex).toBe(1);
    expect(isReadable(stage, 0, 1)).toBe(true);
  });

  it("a read that arrives during a round waits for the next one", () => {
    const stage = settled(3);
    const { sim } = stage;
    sim.command(0, { type: "read", read: 1 });
    sim.run(sim.now + 5);
    sim.command(0, { type: "read", read: 2 });
    sim.run(sim.now + 17);
    expect([isReadable(stage, 0, 1), isReadable(stage, 0, 2)]).toEqual([true, false]);
    sim.run(sim.now + 20);
    expect(isReadable(stage, 0, 2)).toBe(true);
  });
});

describe("raft: lost messages", () => {
  it("are sent again even if reads begin the next round before a heartbeat is due", () => {
    const stage = settled(3, { heartbeatMs: 75 });
    const { sim } = stage;
    for (let read = 1; read <= 60; read++) {
      sim.command(0, { type: "read", read });
      if (read === 10) {
        sim.partition([[2]]);
        stage.propose(0, "missed");
      }
      if (read === 11) sim.heal();
      sim.run(sim.now + 25);
    }
    expect(stage.logs()[2]).toBe(stage.logs()[0]);
  });
});

describe("raft: bounds", () => {
  it("a leader that can commit nothing drops and counts proposals beyond its bound", () => {
    const stage = settled(3, { maxUncommitted: 5, checkQuorum: false });
    stage.sim.partition([[0]]);
    for (let at = 0; at < 8; at++) stage.propose(0, `x${at}`);
    const { log, commitIndex, dropped } = stage.sim.world.state(0);
    expect([log.entries.length - commitIndex, dropped]).toEqual([5, 3]);
  });

  it("a new leader counts uncommitted entries of earlier terms, and never exceeds its bound", () => {
    const node = { self: 0, peers: [1, 2] };
    const protocol = raft({ preVote: false, checkQuorum: false, maxUncommittedChars: 1_000 });
    let state = protocol.init(node.self, node.peers);
    const take = (stimulus: Stimulus<Raft>): void => {
      state = step(protocol, node, state, stimulus).state;
    };
    const receive = (from: NodeId, message: Raft["message"]): void => take({ kind: "receive", from, message });
    const command = (sequence: number, length: number) => ({ client: 0, sequence, operation: "x".repeat(length) });
    const counted = () => (state.role.is === "leader" ? state.role.uncommittedChars : null);
    const entries = [{ type: "command", term: 1, command: command(1, 900) } as const];
    receive(1, { type: "appendEntries", term: 1, previousIndex: 0, previousTerm: 0, commitIndex: 0, entries });
    take({ kind: "timeout", timer: "election" });
    receive(2, { type: "vote", term: 2, isGranted: true });
    expect(counted()).toBe(900);
    for (const sequence of [2, 3])
      take({ kind: "command", command: { type: "propose", command: command(sequence, 100) } });
    expect([counted(), state.dropped]).toEqual([1_000, 1]);
    receive(2, { type: "appended", term: 2, matchIndex: 2 });
    expect([state.commitIndex, counted()]).toEqual([2, 100]);
    for (let sequence = 4; sequence < 30; sequence++)
      take({ kind: "command", command: { type: "propose", command: command(sequence, 100) } });
    expect([counted(), state.dropped]).toEqual([1_000, 1 + 17]);
  });

  it("a node without a leader queues `maxWaiting` commands, and proposes them when it knows one", () => {
    const stage = raftStage({ nodes: 3, options: { ...inOrder(3), maxWaiting: 2 } });
    for (const operation of ["a", "b", "c"]) stage.propose(1, operation);
    expect(stage.sim.world.state(1)).toMatchObject({ dropped: 1, waiting: [{ operation: "a" }, { operation: "b" }] });
    stage.settle();
    expect(new Set(stage.logs())).toEqual(new Set(["1:noop 1:a 1:b"]));
  });

  it("messages in flight to a follower stay within its window, and the whole log arrives", () => {
    const stage = settled(3, { maxInFlight: 2, maxBatchEntries: 3 });
    for (let at = 0; at < 40; at++) stage.propose(0, `x${at}`);
    const { role } = stage.sim.world.state(0);
    const sending = role.is === "leader" ? role.followers[1]?.sending : null;
    expect(sending).toMatchObject({ is: "pipelining", inFlight: [2, 3] });
    stage.settle();
    expect(new Set(stage.logs()).size).toBe(1);
    expect(stage.sim.world.state(2).commitIndex).toBe(41);
  });
});

describe("raft: members and leadership", () => {
  it("a change is refused until an entry of the leader's own term is committed, and while another is in progress", () => {
    const stage = settled(5);
    const { sim } = stage;
    const change = (...voters: NodeId[]) => sim.command(0, { type: "reconfigure", voters, learners: [] });
    change(0, 1, 2);
    change(0, 3, 4);
    expect(stage.logs()[0]).toBe("1:noop 1:{0,1,2,3,4→0,1,2}");
    stage.settle();
    expect(stage.logs()[0]).toBe("1:noop 1:{0,1,2,3,4→0,1,2} 1:{0,1,2}");
    change(0, 0);
    change();
    change(0, 9);
    stage.settle();
    expect(stage.logs()[0]?.split(" ")).toHaveLength(3);
  });

  it("leadership does not go to a learner, and comes back if the target is down", () => {
    const stage = settled(4, { voters: [0, 1, 2], learners: [3] });
    const { sim } = stage;
    sim.command(0, { type: "transfer", to: 3 });
    expect(sim.world.state(0).role).toMatchObject({ transfer: null });
    sim.crash(2);
    sim.command(0, { type: "transfer", to: 2 });
    stage.propose(0, "waits");
    expect(stage.logs()[0]).toBe("1:noop");
    stage.settle();
    expect([stage.leader(), stage.logs()[0]]).toEqual([0, "1:noop 1:waits"]);
  });
});

describe("raft: figure 7", () => {
  const terms: readonly (readonly number[])[] = [
    [1, 1, 1, 4, 4, 5, 5, 6, 6, 6],
    [1, 1, 1, 4, 4, 5, 5, 6, 6],
    [1, 1, 1, 4],
    [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 6],
    [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7],
    [1, 1, 1, 4, 4, 4, 4],
    [1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3],
  ];

  it("a leader makes any diverging log equal to its own, a term at a time", () => {
    const protocol = raft({ priorities: terms.map((_, node) => ({ node, behind: node === 0 ? 0 : 9 })) });
    const nodes = terms.map((_, node) => node);
    const sim = simulation<Raft>({
      protocol: {
        ...protocol,
        init(self, peers) {
          const entries = (terms[self] ?? []).map((term) => ({ type: "noop", term }) as const);
          return { ...protocol.init(self, peers), term: 7, log: { offset: 0, offsetTerm: 0, entries } };
        },
      },
      nodes,
      seed: 1,
      delayMs: 10,
    });
    for (const node of nodes) sim.start(node);
    sim.run(1_000);
    const logs = nodes.map((node) => sim.world.state(node).log.entries.map(({ term }) => term));
    expect(logs).toEqual(nodes.map(() => [...(terms[0] ?? []), 8]));
    expect(sim.violations).toEqual([]);
    // Logs 1 and 2 are too short, which takes one rejection each. Log 5 is too short and has a conflict in one term,
    // and log 6 has conflicts in two terms, which takes two each.
    expect(sim.messages.byType.rejected).toBe(6);
  });
});

describe("raft: options", () => {
  it.each<[Partial<RaftOptions>, string]>([
    [{ heartbeatMs: 300 }, "expected raft.heartbeatMs to be a number below minElectionMs, which is 300, got 300"],
    [{ maxElectionMs: 100 }, "expected raft.maxElectionMs to be a number >= minElectionMs, which is 300, got 100"],
    [{ voters: [] }, "expected raft.voters to be null or at least one node, got []"],
    [{ voters: [0], learners: [0] }, "expected raft.learners to be nodes that are not voters, got [0]"],
    [{ leaseReads: true, checkQuorum: false }, "expected raft.leaseReads to be false unless checkQuorum is true"],
    [{ maxInFlight: 0 }, "expected raft.maxInFlight to be a whole number > 0, got 0"],
  ])("rejects %j", (options, sentence) => {
    expect(() => raft(options)).toThrow(sentence);
  });
});

describe("raft: a node that was down while the members changed", () => {
  it("learns them from the snapshot", () => {
    const { sim } = settled(5, { keptEntries: 0 });
    sim.crash(4);
    sim.command(0, { type: "reconfigure", voters: [0, 1, 2], learners: [3, 4] });
    sim.run(sim.now + 500);
    const index = sim.world.state(0).commitIndex;
    for (const node of [0, 1, 2, 3]) sim.command(node, { type: "compact", index, snapshot: snapshotOf("s") });
    sim.command(0, { type: "transfer", to: 1 }); // The snapshot's term is over by now.
    sim.run(sim.now + 500);
    sim.start(4);
    sim.run(sim.now + 1_000);
    expect(sim.world.state(4)).toMatchObject({ term: 2, snapshot: { index, term: 1 } });
    expect(sim.events(4)).toContainEqual({ type: "installed", index, snapshot: snapshotOf("s") });
    expect(sim.world.state(4).configuration).toEqual({ voters: [0, 1, 2], learners: [3, 4], outgoing: null, index });
    expect(sim.violations).toEqual([]);
  });
});
