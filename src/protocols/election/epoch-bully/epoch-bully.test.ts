import { describe, expect, it } from "vitest";
import { eachSize, range } from "../../../../test/protocols/sizes.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { step } from "../../../core/step.ts";
import { type Simulation, simulation } from "../../../sim/simulation.ts";
import { logLine } from "../../../trace/log.ts";
import { boundMs } from "../../leases.ts";
import { type EpochBully, epochBully } from "./epoch-bully.ts";
import { type EpochBullyOptions, leaderOf } from "./vocabulary.ts";

interface Setting {
  nodes: number;
  delayMs?: number | readonly [number, number];
  seed?: number;
  options?: Partial<EpochBullyOptions>;
  /** If false, the nodes have been running idly. */
  started?: boolean;
}

interface Stage {
  sim: Simulation<EpochBully>;
  story: string[];
  leaders(): Record<NodeId, NodeId | null>;
  epochs(): Record<NodeId, number>;
}

function stage({ nodes, delayMs = 5, seed = 1, options = {}, started = true }: Setting): Stage {
  const story: string[] = [];
  const sim = simulation<EpochBully>({
    protocol: epochBully(options),
    nodes: range(0, nodes - 1),
    seed,
    delayMs,
    trace: (entry) => story.push(logLine(entry)),
  });
  for (const node of range(0, nodes - 1)) started ? sim.start(node) : sim.wake(node);
  const ofAll = <T>(what: (node: NodeId) => T): Record<NodeId, T> =>
    Object.fromEntries(sim.world.alive.map((node) => [node, what(node)]));
  return {
    sim,
    story,
    leaders: () => ofAll((node) => leaderOf(sim.world.state(node), node)),
    epochs: () => ofAll((node) => sim.world.state(node).promised.epoch),
  };
}

/** Returns a stage some time after an election and between two rounds of renewals, so no messages are in flight. */
function settled(setting: Setting): Stage {
  const staged = stage(setting);
  staged.sim.run(450);
  staged.story.length = 0;
  return staged;
}

const following = (leader: NodeId, nodes: readonly NodeId[]): Record<NodeId, NodeId> =>
  Object.fromEntries(nodes.map((node) => [node, leader]));
const text = (story: readonly string[]): string => `${story.join("\n")}\n`;

describe("epoch-bully: stories", () => {
  it("an undisturbed election: the highest node gets a pre-vote and votes, leads and renews its lease", async () => {
    const { sim, story, leaders } = stage({ nodes: 3, started: false });
    story.length = 0;
    sim.command(2, { type: "call" });
    sim.run(170);
    expect(leaders()).toEqual(following(2, [0, 1, 2]));
    expect(sim.violations).toEqual([]);
    await expect(text(story)).toMatchFileSnapshot("../stories/epoch-bully-undisturbed.txt");
  });

  it("(a) node 7 of 8 has crashed and node 4 notices: it makes way for higher nodes, and node 6 leads", () => {
    const { sim, leaders, epochs } = stage({ nodes: 8, started: false });
    sim.crash(7);
    sim.command(4, { type: "call" });
    sim.run(600);
    expect(leaders()).toEqual(following(6, range(0, 6)));
    expect(epochs()).toEqual(following(1, range(0, 6)));
    expect(sim.verdict()).toEqual([]);
  });

  it("the leader crashes: once no node is bound to it, the next node leads a higher epoch", async () => {
    const { sim, story, leaders, epochs } = settled({ nodes: 3 });
    sim.crash(2);
    sim.run(1_200);
    expect(leaders()).toEqual(following(1, [0, 1]));
    expect(epochs()).toEqual({ 0: 2, 1: 2 });
    expect(sim.verdict()).toEqual([]);
    await expect(text(story)).toMatchFileSnapshot("../stories/epoch-bully-failover.txt");
  });

  it("a partition: the old leader's lease ends before the majority elects another leader", async () => {
    const { sim, story, leaders, epochs } = settled({ nodes: 3 });
    sim.partition([[2], [0, 1]]);
    sim.run(1_200);
    expect(leaders()).toEqual({ 0: 1, 1: 1, 2: null });
    expect(sim.events(2).at(-1)).toEqual({ type: "deposed", epoch: 1 });
    const at = (line: RegExp): number => Number.parseFloat(story.find((each) => line.test(each)) as string);
    expect(at(/node 2 {2}emits deposed epoch 1/)).toBeLessThan(at(/node 1 {2}emits elected leader 1 epoch 2/));
    sim.heal();
    sim.run(2_000);
    expect(leaders()).toEqual(following(2, [0, 1, 2]));
    expect(epochs()).toEqual(following(3, [0, 1, 2]));
    expect(sim.verdict()).toEqual([]);
    await expect(text(story)).toMatchFileSnapshot("../stories/epoch-bully-partition.txt");
  });

  it("(c) the highest node recovers: the leader makes way for it, and it leads a higher epoch", async () => {
    const { sim, story, leaders, epochs } = settled({ nodes: 3 });
    sim.crash(2);
    sim.run(1_450);
    story.length = 0;
    sim.start(2);
    sim.run(1_800);
    expect(leaders()).toEqual(following(2, [0, 1, 2]));
    expect(epochs()).toEqual(following(3, [0, 1, 2]));
    expect(sim.verdict()).toEqual([]);
    await expect(text(story)).toMatchFileSnapshot("../stories/epoch-bully-comeback.txt");
  });
});

describe("epoch-bully: what it costs", () => {
  eachSize(3, 64, "N = %i: 6(N − 1) for an election, 2(N − 1) for a round of renewals", (nodes) => {
    const { sim } = stage({ nodes, started: false });
    const [election, renewal] = epochBully().costs.map(({ messages }) => messages(nodes)) as [number, number];
    sim.command(nodes - 1, { type: "call" });
    sim.run(100); // Pre-vote at 0, vote at 10, leads and announces at 20, confirmed at 30; renews at 120 and 220.
    expect([sim.messages.total, election]).toEqual([6 * (nodes - 1), 6 * (nodes - 1)]);
    expect(Object.values(sim.messages.byType)).toEqual(Array.from({ length: 6 }, () => nodes - 1));
    sim.run(200);
    expect([sim.messages.total - election, renewal]).toEqual([2 * (nodes - 1), 2 * (nodes - 1)]);
    sim.run(1_100);
    expect(sim.messages.total - election).toBe(10 * renewal);
  });

  eachSize(3, 64, "N = %i: 4(N − 1) for an election without a pre-vote", (nodes) => {
    const { sim } = stage({ nodes, started: false, options: { preVote: false } });
    sim.command(nodes - 1, { type: "call" });
    sim.run(100);
    expect(sim.messages.total).toBe(4 * (nodes - 1));
  });
});

describe("epoch-bully: preference, resignation and rank", () => {
  it("a single member leads itself, and continues to", () => {
    const { sim, leaders } = stage({ nodes: 1 });
    expect(leaders()).toEqual({ 0: 0 });
    sim.run(10_000);
    expect([leaders(), sim.world.state(0).promised.epoch, sim.messages.total]).toEqual([{ 0: 0 }, 1, 0]);
  });

  it("without takeover, a working leader stays: recovered nodes follow it", () => {
    const { sim, leaders, epochs } = settled({ nodes: 3, options: { takesOver: false } });
    sim.crash(2);
    sim.run(1_450);
    sim.start(2);
    sim.run(5_000);
    expect(leaders()).toEqual(following(1, [0, 1, 2]));
    expect(epochs()).toEqual(following(2, [0, 1, 2]));
    sim.command(2, { type: "call" }); // A command can still call an election.
    sim.run(5_300);
    expect(leaders()).toEqual(following(2, [0, 1, 2]));
  });

  it("a leader that resigns is succeeded within a back-off; it follows, and may stand again", () => {
    const { sim, leaders, epochs } = settled({ nodes: 4 });
    sim.command(3, { type: "resign" });
    expect(sim.events(3).at(-1)).toEqual({ type: "deposed", epoch: 1 });
    sim.run(650);
    expect(leaders()).toEqual(following(2, range(0, 3)));
    sim.run(3_000);
    expect(epochs()).toEqual(following(2, range(0, 3)));
    sim.command(3, { type: "stand" });
    sim.run(3_300);
    expect(leaders()).toEqual(following(3, range(0, 3)));
    expect(sim.verdict()).toEqual([]);
  });

  it("without candidates no node leads, and the first to stand does", () => {
    const { sim, leaders } = stage({ nodes: 3, options: { stands: false } });
    sim.run(3_000);
    expect([leaders(), sim.messages.total]).toEqual([{ 0: null, 1: null, 2: null }, 0]);
    sim.command(0, { type: "stand" });
    sim.run(3_100);
    expect(leaders()).toEqual(following(0, [0, 1, 2]));
    expect(sim.verdict()).toEqual([]);
  });

  it("the highest rank leads, and ids break ties: the least loaded of four nodes", () => {
    const ranks = [1 / 8, 1 / 2, 1 / 2, 1 / 4].map((rank, node) => ({ node, rank }));
    expect(settled({ nodes: 4, options: { ranks } }).leaders()).toEqual(following(2, range(0, 3)));
  });

  it("a changed rank changes the leader: one that falls behind makes way", () => {
    const { sim, leaders } = settled({ nodes: 3 });
    sim.command(2, { type: "rank", rank: 0.5 });
    sim.run(1_000);
    expect(leaders()).toEqual(following(1, [0, 1, 2]));
    sim.command(0, { type: "rank", rank: 7 });
    sim.run(2_000);
    expect(leaders()).toEqual(following(0, [0, 1, 2]));
    expect(sim.verdict()).toEqual([]);
  });

  it("a higher node that cannot reach a majority disturbs no node, neither when disconnected nor after", () => {
    const { sim, leaders, epochs } = settled({ nodes: 5 });
    sim.partition([[4], range(0, 3)]);
    sim.run(20_000);
    expect(leaders()).toEqual({ ...following(3, range(0, 3)), 4: null });
    expect(epochs()).toEqual({ ...following(2, range(0, 3)), 4: 1 });
    // Node 4 exchanges messages with the leader only. The two are not a majority, so the leader need not step down.
    sim.heal();
    for (const other of range(0, 2)) {
      sim.cut(4, other);
      sim.cut(other, 4);
    }
    sim.run(40_000);
    expect([leaders(), epochs()]).toEqual([following(3, range(0, 4)), following(2, range(0, 4))]);
  });

  it("a suspicion of a crashed node saves the wait for its answer", () => {
    const untilElected = (hints: boolean): number => {
      const { sim } = settled({ nodes: 3 });
      sim.crash(2);
      if (hints) for (const node of [0, 1]) sim.command(node, { type: "suspect", node: 2 });
      while (!sim.world.alive.some((node) => sim.world.state(node).phase.is === "leading")) sim.step();
      return sim.now - 450;
    };
    expect(untilElected(false) - untilElected(true)).toBe(50); // 60 ms, minus the 10 ms until the other answers arrive.
  });

  it("ignores commands that name an unknown node", () => {
    const { sim } = settled({ nodes: 3 });
    sim.command(0, { type: "suspect", node: 77 });
    sim.command(0, { type: "restore", node: 77 });
    expect(sim.world.state(0).suspected).toEqual([]);
  });

  it.each<[Partial<EpochBullyOptions>, string]>([
    [{ renewMs: 400 }, "expected epoch-bully.renewMs to be a number below leaseMs, which is 400, got 400"],
    [{ maxBackOffMs: 5 }, "expected epoch-bully.maxBackOffMs to be a number >= minBackOffMs, which is 10, got 5"],
  ])("rejects the options %j", (options, sentence) => {
    expect(() => epochBully(options)).toThrow(sentence);
  });
});

describe("epoch-bully: assumptions of its safety", () => {
  it("ignores late and repeated messages", () => {
    const { sim } = settled({ nodes: 3 });
    const before = JSON.stringify(range(0, 2).map((node) => sim.world.state(node)));
    const { receive } = epochBully();
    const silent = { self: 2, peers: [0, 1] } as never; // Throws if the handler uses the context.
    const leader = sim.world.state(2);
    receive.voteGranted(leader, 0, { type: "voteGranted", epoch: 1 }, silent);
    receive.confirm(leader, 0, { type: "confirm", epoch: 1, round: 1 }, silent);
    receive.answer(leader, 0, { type: "answer", promised: 9, boundTo: null, isAbove: false }, silent);
    receive.requestVote(leader, 1, { type: "requestVote", epoch: 9, released: null }, silent);
    receive.coordinator(leader, 1, { type: "coordinator", epoch: 0, round: 7, rank: 1 }, silent);
    receive.displace(leader, 1, { type: "displace", epoch: 0, rank: 9 }, silent);
    receive.displace(leader, 1, { type: "displace", epoch: 1, rank: 1 }, silent); // Node 1 does not outrank the leader.
    // The node has promised its vote to 2.
    receive.requestVote(sim.world.state(0), 1, { type: "requestVote", epoch: 9, released: null }, silent);
    expect(JSON.stringify(range(0, 2).map((node) => sim.world.state(node)))).toBe(before);
  });

  it("a promise is journaled before the vote is sent, and the node's own promise before it requests votes", () => {
    const protocol = epochBully({ preVote: false });
    const node = { self: 1, peers: [0, 2] };
    const idle = protocol.init(1, [0, 2]);
    const request = { type: "requestVote" as const, epoch: 3, released: null };
    const kinds = (stimulus: Parameters<typeof step<EpochBully>>[3]): string[] =>
      step(protocol, node, idle, stimulus)
        .effects.map(({ kind }) => kind)
        .filter((kind) => kind !== "setTimer" && kind !== "cancelTimer");
    expect(kinds({ kind: "receive", from: 0, message: request })).toEqual(["compact", "send"]);
    expect(kinds({ kind: "command", command: { type: "call" } })).toEqual(["compact", "broadcast"]);
  });

  it("a recovered node votes for no other node until its earlier promises have expired", () => {
    const { sim } = settled({ nodes: 3 });
    sim.crash(0);
    sim.start(0);
    expect(sim.world.state(0)).toMatchObject({ promised: { epoch: 1, to: 2 }, isBound: true, term: null });
    sim.partition([[0], [1, 2]]);
    sim.run(450 + boundMs(400, 0.05) - 1);
    expect(sim.world.state(0).isBound).toBe(true);
    sim.run(450 + boundMs(400, 0.05));
    expect(sim.world.state(0).isBound).toBe(false);
  });

  it("the slowest clock within the margin ends a lease before the fastest ends the followers' binding", () => {
    for (const drift of [0, 0.01, 0.05, 0.3])
      expect(boundMs(400, drift) / (1 + drift)).toBeGreaterThanOrEqual(400 / (1 - drift));
  });

  it("two nodes lead at a time if the old leader's clock is slower than the margin, but never in the same epoch", () => {
    const { sim } = settled({ nodes: 3 });
    sim.clockRate(2, 0.5);
    sim.partition([[2], [0, 1]]);
    sim.run(1_000);
    expect(sim.violations.map(({ property }) => property)).toEqual(["one leader at a time"]);
    expect([sim.world.state(1).term, sim.world.state(2).term]).toEqual([
      { epoch: 2, leader: 1, rank: 1 },
      { epoch: 1, leader: 2, rank: 2 },
    ]);
  });

  it("a paused leader resumes after its lease has ended: the epochs differ", () => {
    const { sim, leaders } = settled({ nodes: 3 });
    sim.pause(2);
    sim.run(1_200);
    expect(sim.violations.map(({ property }) => property)).toEqual(["one leader at a time"]);
    sim.resume(2);
    expect(sim.step(1_200)).toBe(true);
    sim.run(1_201);
    expect(sim.events(2).filter(({ type }) => type === "deposed")).toEqual([{ type: "deposed", epoch: 1 }]);
    sim.run(3_000);
    expect(leaders()).toEqual(following(2, [0, 1, 2]));
  });

  it("without its journal a node votes twice, and an epoch has two leaders", () => {
    const { sim } = stage({ nodes: 3, started: false, options: { preVote: false } });
    sim.partition([[0, 1], [2]]);
    sim.command(0, { type: "call" });
    sim.run(50);
    sim.crash(1, { journal: "lost" });
    sim.partition([[0], [1, 2]]);
    sim.wake(1);
    sim.command(2, { type: "call" });
    sim.run(100);
    expect(sim.violations.map(({ property }) => property)).toContain("one leader per epoch");
  });
});
