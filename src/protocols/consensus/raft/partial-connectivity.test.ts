/**
 * Measures how long no node can commit during partial link failures (Jensen, Howard & Mortier, "Examining Raft's
 * behaviour during partial network failures", 2021; Ng, Haridi & Carbone, "Omni-Paxos", EuroSys 2023).
 */
import { describe, expect, it } from "vitest";
import { type RaftStage, raftStage } from "../../../../test/protocols/raft-stage.ts";
import type { NodeId } from "../../../core/protocol.ts";
import type { RaftOptions } from "./options.ts";

const TAIL_MS = 20_000;
const SEEDS = Array.from({ length: 20 }, (_, seed) => seed + 1);

/** Assigns ascending priorities, so that the first leader is known. */
const inOrder = (nodes: number): Partial<RaftOptions> => ({
  priorities: Array.from({ length: nodes }, (_, node) => ({ node, behind: node })),
});

function isolateAllBut(sim: RaftStage["sim"], hub: NodeId, nodes: number): void {
  for (let a = 0; a < nodes; a++) for (let b = 0; b < nodes; b++) if (a !== b && a !== hub && b !== hub) sim.cut(a, b);
}

/**
 * @returns the time from the failure of the links until a later leader commits its first entry, or null if none does
 */
function downtime(nodes: number, seed: number, options: Partial<RaftOptions>, breaks: (stage: RaftStage) => void) {
  const stage = raftStage({ nodes, seed, logged: false, delayMs: [1, 5], options: { ...inOrder(nodes), ...options } });
  const { sim, propose } = stage;
  sim.run(1_000);
  expect(stage.leader()).toBe(0);
  breaks(stage);
  const brokenAt = sim.now;
  const committed = () => Math.max(...sim.world.alive.map((node) => sim.world.state(node).commitIndex));
  const before = committed();
  while (sim.now < brokenAt + TAIL_MS) {
    for (const node of sim.world.alive) if (sim.world.state(node).role.is === "leader") propose(node, "x");
    sim.run(sim.now + 10);
    if (committed() > before) return sim.now - brokenAt;
  }
  return null;
}

const median = (times: readonly (number | null)[]): number | null =>
  times.toSorted((a, b) => (a ?? TAIL_MS) - (b ?? TAIL_MS))[times.length >> 1] ?? null;

const measured = (nodes: number, options: Partial<RaftOptions>, breaks: (stage: RaftStage) => void) =>
  median(SEEDS.map((seed) => downtime(nodes, seed, options, breaks)));

describe("raft: partial connectivity", () => {
  const quorumLoss = ({ sim }: RaftStage): void => isolateAllBut(sim, 4, 5);

  it("quorum loss: the leader steps down, and the only node that a majority can reach is elected", () => {
    const time = measured(5, {}, quorumLoss);
    expect(time).toBeGreaterThan(600);
    expect(time).toBeLessThan(6_000);
  });

  it("quorum loss without check-quorum: no node commits again", () => {
    expect(downtime(5, 1, { checkQuorum: false }, quorumLoss)).toBeNull();
  });

  /** Cuts links so that the only node that can reach a majority lacks a committed entry. */
  function constrained({ sim, propose }: RaftStage): void {
    for (const other of [3, 4]) sim.cut(0, other);
    propose(0, "missed by 3 and 4");
    sim.run(sim.now + 30);
    isolateAllBut(sim, 4, 5);
    for (const [from, to] of [
      [0, 4],
      [4, 0],
    ] as const)
      sim.cut(from, to);
  }

  it("constrained election: no leader until the links are mended, since the reachable node has an older log", () => {
    expect(downtime(5, 1, {}, constrained)).toBeNull();
  });

  const chained = ({ sim }: RaftStage): void => {
    sim.cut(0, 2);
    sim.cut(2, 0);
  };

  it("chained: the leader continues with the node in the middle, and the end of the chain deposes no leader", () => {
    const stage = raftStage({ nodes: 3, delayMs: [1, 5], options: inOrder(3) });
    stage.sim.run(1_000);
    chained(stage);
    const { term } = stage.sim.world.state(0);
    stage.sim.run(stage.sim.now + TAIL_MS);
    expect(stage.sim.world.state(0)).toMatchObject({ term, role: { is: "leader" } });
    expect(measured(3, {}, chained)).toBeLessThan(30);
  });

  it("chained without pre-vote and check-quorum: the ends depose each other until the node in the middle is elected", () => {
    const stage = raftStage({ nodes: 3, delayMs: [1, 5], options: { preVote: false, checkQuorum: false } });
    stage.sim.run(1_000);
    const [end, middle] = [0, 1, 2].filter((node) => node !== stage.leader()) as [NodeId, NodeId];
    stage.sim.cut(stage.leader(), end);
    stage.sim.cut(end, stage.leader());
    const { term } = stage.sim.world.state(middle);
    stage.sim.run(stage.sim.now + TAIL_MS);
    expect(stage.sim.world.state(middle).term).toBeGreaterThan(term + 1);
    expect(stage.leader()).toBe(middle);
  });
});
