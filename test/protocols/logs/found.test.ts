/** Bugs in Raft and Multi-Paxos that random runs and measurements found, each with the shortest run that shows it. */
import { expect, test } from "vitest";
import { type Stimulus, step } from "../../../src/core/step.ts";
import { type MultiPaxos, multiPaxos } from "../../../src/protocols/consensus/multi-paxos/multi-paxos.ts";
import { raft } from "../../../src/protocols/consensus/raft/raft.ts";
import { simulation } from "../../../src/sim/index.ts";
import { raftStage } from "../raft-stage.ts";
import { logs } from "./logs.ts";
import { type LogUnderTest, swarm } from "./swarm.ts";

test("a new member receives the log even if no client sends a request", () => {
  const { sim, settle, leader } = raftStage({ nodes: 5 });
  settle();
  const reconfigure = (voters: number[]): void => {
    sim.command(leader(), { type: "reconfigure", voters, learners: [] });
    settle();
  };
  const two = [leader(), (leader() + 1) % 5].sort((a, b) => a - b);
  reconfigure(two);
  expect(sim.world.state(leader()).configuration).toMatchObject({ voters: two, outgoing: null });
  reconfigure([0, 1, 2, 3, 4]);
  for (const node of sim.world.alive)
    expect(sim.world.state(node).configuration).toMatchObject({ voters: [0, 1, 2, 3, 4], outgoing: null });
});

test("a candidate that cannot win does not delay the other candidates", () => {
  const options = { preVote: false, checkQuorum: false };
  const { sim, settle, leader, propose } = raftStage({ nodes: 3, options, alone: 0 });
  const [behind, whole] = [1, 2];
  const longestMs = 501;
  settle();
  expect(leader()).toBe(0);
  sim.cut(0, behind);
  propose(0, "a");
  sim.run(sim.now + 150);
  sim.crash(0);
  // The node without the entry has waited longer, so it becomes a candidate first and loses. The other node then
  // becomes a candidate on time.
  const { term } = sim.world.state(whole);
  sim.run(sim.now + longestMs + 3 * 10 + 1);
  expect(leader()).toBe(whole);
  expect(sim.world.state(whole).term).toBe(term + 2);
});

test("a leader syncs an entry to disk before it counts itself among the nodes that have it", () => {
  const told: string[] = [];
  const sim = simulation({
    protocol: raft({ maxElectionMs: 301, priorities: [1, 2].map((node) => ({ node, behind: 200 })) }),
    nodes: [0, 1, 2],
    seed: 1,
    delayMs: 1,
    syncMs: 50,
    onEvent: (_at, node, { type }) => told.push(`${node} ${type}`),
  });
  for (const node of [0, 1, 2]) sim.start(node);
  sim.run(1_000);
  sim.cut(0, 2);
  sim.command(0, { type: "propose", command: { client: 0, sequence: 1, operation: "a" } });
  sim.run(sim.now + 2);
  expect(told).toContain("0 decided");
  sim.crash(0, { journal: "synced" });
  sim.start(0);
  expect(sim.world.state(0).log.entries.at(-1)).toMatchObject({ command: { operation: "a" } });
});

test("seed 361: a node that installed a snapshot knows its members", () => {
  const raft = logs.find(({ name }) => name === "raft") as LogUnderTest;
  expect(swarm(raft, 361).acknowledged).toBeGreaterThan(0);
});

/**
 * In the original run, the node that had promised did not know that it was a member, so it never became a candidate.
 */
test("a candidate chooses a round above a promise to a node with a higher id in the same round", () => {
  const node = { self: 0, peers: [1, 2] };
  const protocol = multiPaxos();
  const take = (state: MultiPaxos["state"], stimulus: Stimulus<MultiPaxos>) => step(protocol, node, state, stimulus);
  const timeout = { kind: "timeout", timer: "election" } as const;
  const ballot = { round: 1, node: 0 };
  const nack = { type: "nack", ballot, promised: { round: 1, node: 2 }, decided: 0, leader: null } as const;
  const standing = take(protocol.init(node.self, node.peers), timeout);
  expect(standing.state.role).toMatchObject({ is: "candidate", ballot });
  const refused = take(standing.state, { kind: "receive", from: 1, message: nack });
  const again = take(refused.state, timeout);
  expect(again.state.role).toMatchObject({ is: "candidate" });
  expect(again.state.promised.round).toBeGreaterThan(1);
});

test("seed 2255 of Cheap Paxos: a leader that still has to adopt new members answers no read by its lease from the old ones", () => {
  const cheap = logs.find(({ name }) => name === "cheap-paxos") as LogUnderTest;
  expect(swarm(cheap, 2255).acknowledged).toBeGreaterThan(0);
});

test("seed 201: members that returned received nothing while the log was full", () => {
  const raft = logs.find(({ name }) => name === "raft") as LogUnderTest;
  expect(swarm(raft, 201).acknowledged).toBeGreaterThan(0);
});
