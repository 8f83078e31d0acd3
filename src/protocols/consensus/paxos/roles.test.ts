import { describe, expect, it } from "vitest";
import { range } from "../../../../test/protocols/sizes.ts";
import { explore } from "../../../check/explore.ts";
import type { Protocol } from "../../../core/protocol.ts";
import { simulation } from "../../../sim/simulation.ts";
import type { Quorums } from "../parts/quorum-systems.ts";
import { type Paxos, type PaxosOptions, paxos } from "./paxos.ts";

const propose = (value: string): Paxos["command"] => ({ type: "propose", value });

function stage(nodes: number, options: Partial<PaxosOptions> = {}) {
  const sim = simulation<Paxos>({ protocol: paxos(options), nodes: range(0, nodes - 1), seed: 1, delayMs: 10 });
  for (const node of range(0, nodes - 1)) sim.wake(node);
  const decided = () => new Set(sim.world.alive.map((node) => sim.world.state(node).decided));
  return { sim, decided };
}

describe("paxos: roles and quorums", () => {
  it("decides with separate roles: two proposers, three acceptors, two learners", () => {
    const roles = { proposers: [0, 1], acceptors: [2, 3, 4], learners: [5, 6] };
    for (const acceptorsTell of ["learners", "proposer"] as const) {
      const { sim } = stage(7, { ...roles, acceptorsTell });
      sim.command(0, propose("x"));
      sim.command(6, propose("z")); // Node 6 is not a proposer.
      sim.run();
      const knowing = range(0, 6).filter((node) => sim.world.state(node).decided === "x");
      expect(knowing).toEqual([0, 5, 6]);
      expect(sim.messages.byType).toMatchObject({ prepare: 3, promise: 3, accept: 3 });
    }
  });

  it.each<[string, Quorums, number[], number[]]>([
    ["a majority", { type: "majority" }, [0, 1, 2, 3, 4], [0, 1, 2]],
    ["the heavy ones", { type: "weighted", weights: { 0: 4, 1: 4 }, threshold: 6 }, [0, 1], [0, 2, 3]],
    ["a row and a column of 2 × 3", { type: "grid", columns: 3 }, [0, 1, 2, 3], [0, 1, 2, 4]],
    [
      "any of these sets",
      {
        type: "sets",
        sets: [
          [0, 1],
          [0, 2],
          [1, 2],
        ],
      },
      [0, 1],
      [0, 2],
    ],
  ])("%s: decides when the live nodes are a quorum, and not otherwise", (_, quorums, some, others) => {
    const nodes = quorums.type === "majority" || quorums.type === "weighted" ? 5 : quorums.type === "grid" ? 6 : 4;
    for (const alive of [some, others]) {
      const { sim, decided } = stage(nodes, { quorums });
      for (const node of range(0, nodes - 1)) if (!alive.includes(node)) sim.crash(node);
      sim.command(0, propose("x"));
      sim.run(5_000);
      expect(decided()).toEqual(new Set(["x"]));
      sim.crash(alive.at(-1) as number);
    }
    const { sim, decided } = stage(nodes, { quorums });
    for (const node of range(1, nodes - 1)) sim.crash(node);
    sim.command(0, propose("x"));
    sim.run(5_000);
    expect(decided()).toEqual(new Set([null])); // One node is not a quorum.
  });

  it.each<[Partial<PaxosOptions>, string]>([
    [
      {
        quorums: {
          type: "sets",
          sets: [
            [0, 1],
            [2, 3],
          ],
        },
      },
      "expected paxos.quorums to intersect: {0, 1} and {2, 3} have no node in common",
    ],
    [
      { quorums: { type: "weighted", weights: {}, threshold: 2 } },
      "expected paxos.quorums to intersect: expected the threshold to be more than half of 4, got 2",
    ],
    [
      { quorums: { type: "grid", columns: 3 } },
      "expected paxos.quorums to intersect: all nodes together (0, 1, 2, 3) do not form a quorum",
    ],
    [{ acceptors: [] }, "expected paxos.acceptors to be one or more of the nodes 0, 1, 2, 3, got []"],
    [{ learners: [7] }, "expected paxos.learners to be one or more of the nodes 0, 1, 2, 3, got [7]"],
  ])("rejects %j before the run", (options, sentence) => {
    expect(() => stage(4, options)).toThrow(sentence);
  });

  it("quorums that do not intersect decide two values, which the check before the run prevents", () => {
    const unchecked = { ...paxos(), init: paxos().init };
    const quorums: Quorums = {
      type: "sets",
      sets: [
        [0, 1],
        [2, 3],
      ],
    };
    const careless: Protocol<Paxos> = { ...paxos({ quorums }), init: unchecked.init };
    const found = explore<Paxos>({
      protocol: careless,
      nodes: [0, 1, 2, 3],
      network: "fifo",
      timers: "never",
      begin: "idle",
      asks: (node) => (node === 0 || node === 3 ? [propose(`by ${node}`)] : []),
      properties: careless.properties.filter(({ name }) => name === "agreement"),
    });
    expect([found.verdict, found.property?.name]).toEqual(["violated", "agreement"]);
  });
});

describe("paxos: learning at all nodes", () => {
  it("reminds a learner that was cut off, at most five times if it never answers", () => {
    const { sim, decided } = stage(5);
    for (const node of [0, 1, 2, 3]) sim.cut(node, 4);
    sim.command(0, propose("x"));
    sim.run(5_000);
    expect(decided()).toEqual(new Set(["x", null]));
    sim.heal();
    sim.run(20_000);
    expect(decided()).toEqual(new Set(["x"]));
    const alone = stage(3);
    alone.sim.crash(2);
    alone.sim.command(0, propose("x"));
    alone.sim.run();
    expect(alone.sim.messages.byType.decided).toBe(5);
  });

  it("an acceptor that has accepted a value and learns no decision proposes the value itself", () => {
    const { sim, decided } = stage(3, { acceptorsTell: "proposer" });
    sim.command(0, propose("x"));
    sim.run(35);
    sim.crash(0); // It crashes before it sends to the learners.
    sim.run();
    expect(decided()).toEqual(new Set(["x"]));
    sim.start(0);
    sim.run();
    expect(sim.verdict()).toEqual([]);
  });

  it("journals its decision, so that a node decides once even after restarts", () => {
    const { sim, decided } = stage(3);
    sim.command(0, propose("x"));
    sim.run();
    for (const node of [0, 1, 2]) sim.crash(node);
    for (const node of [0, 1, 2]) sim.start(node);
    expect(decided()).toEqual(new Set(["x"]));
    sim.command(1, propose("y"));
    sim.run();
    expect([sim.events(1).length, sim.verdict()]).toEqual([0, []]); // It does not decide again.
  });

  it("never reuses a ballot, no matter how often its node crashes", () => {
    const { sim } = stage(3);
    const seen: string[] = [];
    for (const node of [1, 2]) sim.crash(node);
    for (const life of range(1, 20)) {
      sim.command(0, propose(`in life ${life}`));
      const { proposer } = sim.world.state(0);
      if (proposer.is === "preparing") seen.push(JSON.stringify(proposer.ballot));
      sim.crash(0);
      sim.start(0);
    }
    expect(new Set(seen).size).toBe(20);
  });
});
