import { describe, expect, it } from "vitest";
import { agreed, proposal, walked } from "../../../../test/protocols/logs/explored.ts";
import { reaching } from "../../../../test/protocols/reached.ts";
import { range } from "../../../../test/protocols/sizes.ts";
import { type ExploreOptions, explore } from "../../../check/explore.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { majority } from "../../../core/quorums.ts";
import { random } from "../../../core/random.ts";
import { step } from "../../../core/step.ts";
import { simulation } from "../../../sim/simulation.ts";
import { logLine } from "../../../trace/log.ts";
import { replicated } from "../family/systems.ts";
import { type CheapPaxos, type CheapPaxosOptions, cheapPaxos } from "./cheap-paxos.ts";

const propose = (sequence: number, client = 0): CheapPaxos["command"] => ({
  type: "propose",
  command: { client, sequence, operation: `append ${client}.${sequence}` },
});

function stage(nodes: number, options: Partial<CheapPaxosOptions> = {}) {
  const lines: string[] = [];
  const atAuxiliaries: string[] = [];
  const mains = majority(nodes);
  const sim = simulation<CheapPaxos>({
    protocol: cheapPaxos(options),
    nodes: range(0, nodes - 1),
    seed: 1,
    delayMs: 10,
    trace(entry) {
      lines.push(logLine(entry));
      if (entry.kind === "send" && (entry.to >= mains || entry.node >= mains)) atAuxiliaries.push(entry.message.type);
    },
  });
  for (const node of range(0, nodes - 1)) sim.wake(node);
  lines.length = 0;
  const decided = (node: NodeId) =>
    sim.events(node).flatMap((event) => (event.type === "decided" ? [event.command.operation] : []));
  const voters = (node: NodeId) => sim.world.state(node).configurations.at(-1)?.voters;
  return { sim, lines, atAuxiliaries, decided, voters, mains };
}

describe("cheap-paxos: costs", () => {
  it.each([3, 4, 5, 7, 9])("N = %i: 2f messages per command, and none to an auxiliary in ten seconds", (nodes) => {
    const { sim, atAuxiliaries, decided, mains } = stage(nodes, { announces: false });
    const f = mains - 1;
    for (const sequence of range(1, 10)) {
      sim.command(0, propose(sequence));
      sim.run(sequence * 1_000);
    }
    expect(decided(0)).toHaveLength(10);
    expect(sim.messages.byType).toMatchObject({ prepare: f, promise: f, accept: 10 * f, accepted: 10 * f });
    expect(cheapPaxos({ announces: false }).costs[0]?.messages(nodes)).toBe(2 * f);
    expect(atAuxiliaries).toEqual([]);
  });
});

describe("cheap-paxos: stories", () => {
  it("the auxiliary helps to replace a crashed main node, and is idle again", async () => {
    const { sim, lines, atAuxiliaries, decided, voters } = stage(3, { window: 2 });
    sim.command(0, propose(1));
    sim.run(150);
    lines.length = 0;
    sim.crash(1);
    sim.command(0, propose(2));
    sim.run(700);
    expect([decided(0), voters(0)]).toEqual([["append 0.1", "append 0.2"], [0]]);
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("stories/main-node-crashes.txt");
    expect(atAuxiliaries.at(-1)).toBe("forget");
    expect(sim.world.state(2).log).toEqual({});
    atAuxiliaries.length = 0;
    sim.command(0, propose(3));
    sim.run(5_000);
    expect([decided(0).length, atAuxiliaries]).toEqual([3, []]);
  });

  it("another main node and the auxiliary take over the open proposals of a crashed leader", () => {
    const { sim, decided, voters } = stage(3);
    sim.command(0, propose(1));
    sim.run(95);
    sim.command(0, propose(2));
    sim.run(110); // Node 1 has accepted it, and its answer is in flight.
    sim.crash(0);
    sim.run(3_000);
    expect([decided(1), voters(1)]).toEqual([["append 0.1", "append 0.2"], [1]]);
    sim.start(0);
    sim.run(6_000);
    expect([decided(0), voters(0)]).toEqual([
      ["append 0.1", "append 0.2"],
      [0, 1, 2],
    ]);
    expect(sim.verdict()).toEqual([]);
  });

  it("stops below the threshold and reports that, and continues when enough nodes are back", () => {
    const { sim, decided } = stage(5);
    sim.command(0, propose(1));
    sim.run(200);
    for (const node of [0, 1, 3]) sim.crash(node);
    sim.command(2, propose(1, 2));
    sim.run(4_000);
    expect(sim.events(2)).toContainEqual({ type: "halted", promised: 2, needed: 3 });
    expect(cheapPaxos().view(sim.world.state(2), 2)).toMatchObject({ role: "halted", leader: null });
    sim.start(1);
    sim.run(5_000);
    sim.command(2, propose(1, 2));
    sim.run(7_000);
    expect(decided(2)).toEqual(["append 0.1", "append 2.1"]);
    expect(sim.verdict()).toEqual([]);
  });

  it("no node continues without a decision that one main node made alone", () => {
    const { sim, decided } = stage(3);
    sim.command(0, propose(1));
    sim.run(95);
    sim.crash(1);
    sim.run(2_000);
    sim.command(0, propose(2)); // Only node 0 knows of this.
    sim.run(2_100);
    sim.crash(0);
    sim.start(1);
    sim.run(8_000);
    expect(decided(1)).toEqual([]);
    expect(sim.events(1).some(({ type }) => type === "halted")).toBe(true);
    sim.start(0);
    sim.run(12_000);
    expect([decided(0), decided(1)]).toEqual([
      ["append 0.1", "append 0.2"],
      ["append 0.1", "append 0.2"],
    ]);
    expect(sim.verdict()).toEqual([]);
  });
});

describe("cheap-paxos: the last main node", () => {
  it("a leader that is no longer a member does not replace the last main node, even if that is silent", () => {
    const node = { self: 0, peers: [1, 2] };
    const protocol = cheapPaxos();
    const fresh = protocol.init(0, node.peers);
    const ballot = { round: 1, node: 0 };
    const state = {
      ...fresh,
      promised: ballot,
      configurations: [{ from: 1, voters: [1], learners: [0] }],
      role: {
        is: "leader" as const,
        ballot,
        promises: [0, 1],
        found: {},
        isEngaged: false,
        next: 1,
        votes: {},
        resendBelow: 0,
        announced: 0,
        round: 1,
        confirms: [0],
        lease: [],
        reads: [],
        followers: { 1: { silent: 9, decided: 0 } },
        wanted: null,
        auxiliariesHold: 0,
      },
    };
    const { effects, state: after } = step(protocol, node, state, { kind: "timeout", timer: "heartbeat" });
    expect(effects.filter(({ kind }) => kind === "persist")).toEqual([]);
    // The last main node knows the decision, so this node steps down.
    expect(after).toMatchObject({ role: { is: "follower" }, log: {} });
  });
});

describe("cheap-paxos: under random crashes, losses and partitions", () => {
  function survives(seed: number): number {
    const chance = random(seed).stream("faults");
    const nodes = range(0, seed % 2 === 0 ? 2 : 4);
    const mains = majority(nodes.length);
    const log = { keep: 3, window: 4 };
    const sim = simulation({
      protocol: replicated(cheapPaxos, { client: { retryMs: 300 }, machine: { snapshotEvery: 5 }, log }),
      nodes,
      seed,
      delayMs: [1, 40],
      link: { lossRate: 0.05, duplicateRate: 0.05, order: "none" },
    });
    const isUp = (node: NodeId) => sim.world.alive.includes(node);
    for (const node of nodes) sim.start(node);
    for (let at = 300; at < 8_000; at += 300) {
      sim.run(at);
      const node = chance.pick(nodes);
      const what = chance.below(20);
      if (what < 5 && isUp(node) && sim.world.alive.length > 1) sim.crash(node);
      else if (what >= 5 && what < 11 && !isUp(node)) sim.start(node);
      else if (what >= 11 && what < 16 && isUp(node % mains))
        sim.command(node % mains, { type: "client", body: { type: "use", commands: 4 } });
      else if (what === 16) sim.partition([[node, (node + 1) % nodes.length]]);
      else if (what > 16) sim.heal();
    }
    sim.heal();
    for (const node of nodes) if (!isUp(node)) sim.start(node);
    sim.run(25_000);
    expect({ seed, verdict: sim.verdict() }).toEqual({ seed, verdict: [] });
    return sim.world.state(0).log.decided;
  }

  it("keeps its properties, and makes progress once all nodes are back", () => {
    for (const seed of range(1, 8)) expect(survives(seed)).toBeGreaterThan(0);
  });

  it("keeps its properties over many seeds", { tags: ["larger"] }, () => {
    for (const seed of range(9, 300)) survives(seed);
  });
});

/** Both main nodes propose, and node 2 is the auxiliary. */
const model = (more: Partial<ExploreOptions<CheapPaxos>> = {}): ExploreOptions<CheapPaxos> => ({
  protocol: cheapPaxos({ window: 2, announces: false }),
  properties: [agreed([0, 1])],
  nodes: [0, 1, 2],
  network: "fifo",
  timers: "never",
  begin: "idle",
  asks: (node) => (node === 2 ? [] : [proposal(node)]),
  ...more,
});
const faults = { crashes: 1, recoveries: 1, losses: 1 } as const;

describe("cheap-paxos: every run of two proposers", () => {
  it("keeps agreement, integrity and validity, with a crash, a recovery and a loss as well", () => {
    expect(reaching(explore(model()), "decided")).toMatchObject({ verdict: "holds", states: 68 });
    const found = reaching(explore(model(faults)), "decided", "replay accepted");
    expect(found).toMatchObject({ verdict: "holds", states: 1_584 });
  });

  /** A node contacts auxiliaries after a main node has been silent. Runs are cut off at a third timeout. */
  it("the same with two timeouts while no message is in flight: members change, and auxiliaries help", {
    tags: ["long"],
  }, () => {
    const found = explore(model({ ...faults, timers: "quiet", maxTimeouts: 2 }));
    expect([found.verdict, found.property, found.states]).toEqual(["unknown", null, 353_446]);
    reaching(found, "decided", "reconfigured", "halted", "replay accepted");
  });

  it("the same in random, PCT and swarm runs, with timeouts at any time", { tags: ["long"] }, () => {
    walked(model({ ...faults, timers: "free", maxTimeouts: 8 }), "led", "decided", "reconfigured", "replay accepted");
  });
});
