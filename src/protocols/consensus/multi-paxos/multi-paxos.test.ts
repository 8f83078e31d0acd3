import { describe, expect, it } from "vitest";
import type { NodeId } from "../../../core/protocol.ts";
import { step } from "../../../core/step.ts";
import { simulation } from "../../../sim/simulation.ts";
import { logLine } from "../../../trace/log.ts";
import { type MultiPaxos, type MultiPaxosOptions, multiPaxos } from "./multi-paxos.ts";

const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const propose = (sequence: number, client = 0): MultiPaxos["command"] => ({
  type: "propose",
  command: { client, sequence, operation: `append ${client}.${sequence}` },
});

/** The log alone, its nodes up and idle: no election before somebody proposes. */
function stage(nodes: number, options: Partial<MultiPaxosOptions> = {}) {
  const story: string[] = [];
  const sim = simulation<MultiPaxos>({
    protocol: multiPaxos(options),
    nodes: range(0, nodes - 1),
    seed: 1,
    delayMs: 10,
    trace: (entry) => story.push(logLine(entry)),
  });
  for (const node of range(0, nodes - 1)) sim.wake(node);
  story.length = 0;
  const decided = (node: NodeId) =>
    sim.events(node).flatMap((event) => (event.type === "decided" ? [event.command.operation] : []));
  return { sim, story, decided };
}

/** Node 0 leads, and the first command is decided. */
function led(nodes: number, options: Partial<MultiPaxosOptions> = {}) {
  const staged = stage(nodes, options);
  staged.sim.command(0, propose(1));
  staged.sim.run(95);
  expect(staged.sim.world.state(0)).toMatchObject({ role: { is: "leader" }, decided: 1 });
  staged.story.length = 0;
  return staged;
}

describe("multi-paxos: what it costs", () => {
  it.each([3, 4, 5, 7, 9])("N = %i: 2(N − 1) messages once for phase 1, then 2(N − 1) a command", (nodes) => {
    const others = nodes - 1;
    const { sim, decided } = stage(nodes, { announces: false });
    sim.command(0, propose(1));
    sim.run(95); // Before the second heartbeat.
    const heartbeats = { heartbeat: others, confirm: others };
    const phaseOne = { prepare: others, promise: others };
    expect(sim.messages.byType).toEqual({ ...phaseOne, ...heartbeats, accept: others, accepted: others });
    for (const sequence of range(2, 11)) sim.command(0, propose(sequence));
    sim.run(115);
    expect(decided(0)).toHaveLength(11); // Two delays later.
    expect(sim.messages.byType).toMatchObject({ ...phaseOne, accept: 11 * others, accepted: 11 * others });
    expect(multiPaxos({ announces: false }).costs[0]?.messages(nodes)).toBe(2 * others);
  });

  it.each([3, 4, 5, 7, 9])("N = %i: N − 1 notices tell the others, one delay later", (nodes) => {
    const { sim, decided } = led(nodes);
    sim.command(0, propose(2));
    sim.run(115);
    expect([decided(0).length, decided(nodes - 1).length]).toEqual([2, 1]);
    sim.run(125);
    expect(decided(nodes - 1)).toEqual(["append 0.1", "append 0.2"]);
    const each = nodes - 1;
    expect(sim.messages.byType).toMatchObject({ accept: 2 * each, accepted: 2 * each, decided: 2 * each });
    expect(multiPaxos().costs[0]?.messages(nodes)).toBe(3 * each);
  });
});

describe("multi-paxos: stories", () => {
  it("one command after another under one leader", async () => {
    const { sim, story } = stage(3);
    sim.command(0, propose(1));
    sim.run(60);
    sim.command(0, propose(2));
    sim.run(95);
    await expect(`${story.join("\n")}\n`).toMatchFileSnapshot("stories/steady-state.txt");
  });
});

describe("multi-paxos: what it promises", () => {
  it("an acceptor journals what it promises and accepts before it answers", () => {
    const node = { self: 1, peers: [0, 2] };
    const ballot = { round: 1, node: 0 };
    const kinds = (message: MultiPaxos["message"]) =>
      step(multiPaxos(), node, multiPaxos().init(1, node.peers), { kind: "receive", from: 0, message })
        .effects.map(({ kind }) => kind)
        .filter((kind) => kind === "persist" || kind === "send");
    expect(kinds({ type: "prepare", ballot, from: 1 })).toEqual(["persist", "send"]);
    expect(kinds({ type: "accept", ballot, slot: 1, value: { type: "noop" }, decided: 0 })).toEqual([
      "persist",
      "send",
    ]);
    expect(kinds({ type: "heartbeat", ballot, round: 1, decided: 0 })).toEqual(["persist", "send"]);
  });

  it.each<[Partial<MultiPaxosOptions>, string]>([
    [{ window: 0 }, "expected multi-paxos.window to be a finite number > 0, got 0"],
    [{ renewMs: 500 }, "expected multi-paxos.renewMs to be a number below leaseMs, which is 400, got 500"],
    [{ quorum: 2 } as never, "expected multi-paxos.quorum to be absent, got 2"],
  ])("refuses the options %j", (options, sentence) => {
    expect(() => multiPaxos(options)).toThrow(sentence);
  });
});
