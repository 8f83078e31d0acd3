import { describe, expect, it } from "vitest";
import { random } from "../../../core/random.ts";
import { type Simulation, simulation } from "../../../sim/index.ts";
import { logLine } from "../../../trace/log.ts";
import { type ByzantineBehaviour, byzantine } from "../../byzantine.ts";
import { contexts, withContext } from "../../contexts.ts";
import { type ReplicatedSystem, replicated } from "../family/systems.ts";
import { type Pbft, type PbftOptions, pbft } from "./pbft.ts";

type Replica = ReplicatedSystem<Pbft>;

const range = (nodes: number): number[] => Array.from({ length: nodes }, (_, id) => id);
const use = (commands: number): Replica["command"] => ({ type: "client", body: { type: "use", commands } });

interface Setting {
  readonly log?: Partial<PbftOptions>;
  readonly liars?: Readonly<Record<number, ByzantineBehaviour>>;
  readonly seed?: number;
  readonly delayMs?: number | readonly [number, number];
  readonly processingMs?: readonly [number, number];
}

/** Starts replicas with clients and state machines. */
function stage(nodes: number, { log = {}, liars = {}, seed = 1, delayMs = 10, processingMs = [0, 0] }: Setting = {}) {
  const lines: string[] = [];
  const behaviours = new Map(Object.entries(liars).map(([id, how]) => [Number(id), how]));
  const sim: Simulation<Replica> = simulation<Replica>({
    protocol: byzantine(replicated<Pbft, Partial<PbftOptions>>(pbft, { log, client: { retryMs: 400 } }), behaviours),
    nodes: range(nodes),
    seed,
    delayMs,
    processingMs,
    properties: "every step",
    trace: (entry) => lines.push(logLine(entry)),
  });
  for (const node of range(nodes)) sim.start(node);
  lines.length = 0;
  const log_ = (node: number): Pbft["state"] => sim.world.state(node).log;
  const applied = (node: number) => (sim.world.state(node).machine.data as { entries: string[] }).entries;
  return { sim, lines, log: log_, applied, told: () => `${lines.join("\n")}\n` };
}

describe("pbft: costs", () => {
  it.each([
    [4, 24, 29],
    [7, 84, 92],
    [10, 180, 191],
  ])(
    "N = %i: %i messages between replicas, %i with the request of a client on another node and its replies",
    (nodes, between, whole) => {
      const { sim, applied } = stage(nodes);
      sim.command(0, use(1));
      sim.run(1_000);
      expect(sim.messages).toEqual({
        total: between,
        byType: { prePrepare: nodes - 1, prepare: (nodes - 1) ** 2, commit: nodes * (nodes - 1) },
      });
      expect(pbft().costs[0]?.messages(nodes)).toBe(between);
      for (const node of range(nodes)) expect(applied(node)).toEqual(["0.1"]);

      const apart = stage(nodes + 1, { log: { clients: 1 } });
      apart.sim.command(nodes, use(1));
      apart.sim.run(1_000);
      expect(apart.sim.messages).toMatchObject({ total: whole, byType: { request: 1, reply: nodes } });
      expect(pbft().costs[1]?.messages(nodes)).toBe(whole);
      expect(apart.sim.world.state(nodes).client.underWay).toBeNull();
    },
  );

  it.each([4, 5, 6, 7, 8, 9])("N = %i: 2N(N − 1) per batch, and N(N − 1) per checkpoint, after K batches", (nodes) => {
    const { sim } = stage(nodes, { log: { checkpointEvery: 4, window: 8 } });
    sim.command(0, use(9));
    sim.run(3_000);
    const all = nodes * (nodes - 1);
    expect(sim.messages).toMatchObject({ total: 9 * 2 * all + 2 * all, byType: { checkpoint: 2 * all } });
    expect(pbft().costs[2]?.messages(nodes)).toBe(all);
  });

  it("requests that arrive while batches are in flight are in the next one", () => {
    const { sim } = stage(4, { log: { maxInFlight: 1 } });
    for (const node of range(4)) sim.command(node, use(1));
    sim.run(1_000);
    // The first batch is from the primary's own client, and the second one from the other clients.
    expect(sim.messages.byType).toMatchObject({ prePrepare: 2 * 3, commit: 2 * 12 });
  });
});

describe("pbft: a replica that has given up a view alone", () => {
  it("asks all replicas at once: the others continue in that view, and do not wait for a batch that only it knows", () => {
    const { sim, log } = stage(4);
    for (const from of [0, 1, 2]) sim.cut(from, 3);
    sim.command(3, use(1));
    sim.run(1_000);
    sim.heal();
    sim.run(8_000);
    expect([log(3).isChanging, log(3).executed, log(0).view]).toEqual([true, 1, 0]);
    sim.command(3, use(1));
    // The request, three phases, and a status that asks for the batch; its own retransmission would take 600 ms more.
    sim.run(8_400);
    expect(sim.world.state(3).client.underWay).toBeNull();
  });
});

describe("pbft: stories", () => {
  it("the normal case", async () => {
    const { sim, told } = stage(4);
    sim.command(0, use(1));
    sim.run(1_000);
    await expect(told()).toMatchFileSnapshot("stories/normal-case.txt");
  });

  it("the next primary takes over a batch that one backup has prepared", async () => {
    const { sim, log, told, applied } = stage(4, { log: { statusMs: 0 } }); // Lost messages would be sent again.
    for (const [from, to] of [
      [1, 2],
      [1, 3],
      [2, 3],
      [3, 2],
    ] as const)
      sim.cut(from, to);
    sim.command(0, use(1));
    sim.run(25);
    sim.crash(0);
    expect([1, 2, 3].filter((node) => log(node).slots[1]?.prepared)).toEqual([1]);
    sim.heal();
    sim.run(5_000);
    for (const node of [1, 2, 3]) expect([log(node).view, applied(node)]).toEqual([1, ["0.1"]]);
    await expect(told()).toMatchFileSnapshot("stories/primary-crashes.txt");
  });

  it("a replica behind a checkpoint fetches the state", async () => {
    const { sim, log, lines, told, applied } = stage(4, { log: { checkpointEvery: 2, window: 4, maxChunkChars: 60 } });
    sim.partition([[0, 1, 2], [3]]);
    sim.command(0, use(4));
    sim.run(1_000);
    expect([log(0).stable.sequence, Object.keys(log(0).slots)]).toEqual([4, []]);
    sim.heal();
    sim.command(0, use(2));
    sim.run(1_100);
    lines.length = 0;
    sim.run(2_000);
    expect([log(3).stable.sequence, applied(3)]).toEqual([6, range(6).map((i) => `0.${i + 1}`)]);
    await expect(told()).toMatchFileSnapshot("stories/state-transfer.txt");
  });
});

describe("pbft: crashes and recoveries", () => {
  it("a power failure of all replicas keeps acknowledged commands, and the replicas continue", () => {
    const { sim, applied } = stage(4, { log: { checkpointEvery: 2, window: 4 } });
    sim.command(2, use(5));
    sim.run(2_000);
    for (const node of range(4)) sim.crash(node, { journal: "synced" });
    for (const node of range(4)) sim.start(node);
    sim.run(4_000);
    for (const node of range(4)) expect(applied(node)).toEqual(range(5).map((i) => `2.${i + 1}`));
    sim.command(1, use(1));
    sim.run(6_000);
    expect(applied(3).at(-1)).toBe("1.1");
    expect(sim.violations).toEqual([]);
  });

  /**
   * The client repeats the crashed primary's request to all replicas, then the timeout expires. Five message delays
   * follow: view change, new view, pre-prepare, prepare, commit.
   */
  it("after a crash of the primary under load, decisions resume within a retransmission, the timeout and five delays", () => {
    const [retransmitMs, viewChangeMs, delayMs] = [300, 500, 10];
    const gaps: number[] = [];
    for (let at = 0; at < 4; at++) {
      const { sim, log } = stage(4, {
        log: { retransmitMs, viewChangeMs, checkpointEvery: 128, window: 256 },
        delayMs,
      });
      for (const node of [1, 2, 3]) sim.command(node, use(100));
      sim.run(200 + 15 * at);
      sim.crash(0);
      const crashedAt = sim.now;
      let [isNew, before] = [false, 0];
      while (!isNew || log(1).executed === before) {
        if (!isNew) before = log(1).executed;
        isNew = log(1).view === 1 && !log(1).isChanging;
        expect(sim.step(10_000)).toBe(true);
      }
      gaps.push(sim.now - crashedAt);
      expect(sim.violations).toEqual([]);
    }
    expect(Math.max(...gaps)).toBeLessThanOrEqual(retransmitMs + viewChangeMs + 5 * delayMs);
  });

  it("each unsuccessful view doubles the timeout", () => {
    const { sim, log } = stage(7, { log: { viewChangeMs: 100, maxViewChangeMs: 800, retransmitMs: 20 } });
    for (const node of [1, 2]) sim.crash(node);
    sim.command(4, use(1));
    sim.run(5);
    sim.crash(0);
    const enteredAt: number[] = [];
    for (let view = 0; sim.now < 20_000 && sim.step(20_000); )
      if (log(4).view > view) {
        view = log(4).view;
        enteredAt.push(sim.now);
      }
    // Three primaries in a row have crashed. Four replicas are too few to decide anything, so they keep waiting.
    const waits = enteredAt.slice(1).map((at, i) => Math.round((at - (enteredAt[i] ?? 0)) / 100));
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
  });
});

describe("pbft: seven replicas under load, a client at each", () => {
  /**
   * Runs seven replicas, each with a client that sends a thousand requests. An earlier version had one request per
   * batch, timeouts that a single batch resets, and repeated forwarding by all replicas. Under this load, it changed
   * its view every second and executed nothing.
   */
  function loaded(processingMs: readonly [number, number]) {
    const staged = stage(7, { delayMs: [1, 2], processingMs, log: {} });
    for (const node of range(7)) staged.sim.command(node, use(1_000));
    const views = (): number[] => range(7).map((node) => staged.log(node).view);
    const executed = (): number => Object.values(staged.log(6).last).reduce((sum, each) => sum + each, 0);
    return { ...staged, views, executed };
  }

  it("8 ms a message: waiting requests share a batch, and no view is given up", () => {
    const { sim, views, executed } = loaded([4, 12]);
    sim.run(6_000);
    expect(views()).toEqual(range(7).map(() => 0));
    expect(executed()).toBeGreaterThan(100);
    expect(sim.messages.total / (84 * executed())).toBeLessThan(0.5);
    expect(sim.violations).toEqual([]);
  });

  it("a replica does not verify known signatures again in a view change", () => {
    let verified = 0;
    const counting = contexts(({ signatures }) => ({
      signatures: {
        sign: (text) => signatures.sign(text),
        isSigned(by, text, signature) {
          verified += 1;
          return signatures.isSigned(by, text, signature);
        },
      },
    }));
    const counted = (given?: Partial<PbftOptions>): ReturnType<typeof pbft> => withContext(pbft(given), counting);
    const protocol = replicated<Pbft, Partial<PbftOptions>>(counted);
    const sim = simulation<Replica>({ protocol, nodes: range(7), seed: 1, delayMs: 10 });
    for (const node of range(7)) sim.start(node);
    sim.command(0, use(10));
    sim.run(1_000);
    sim.crash(0);
    sim.command(1, use(1));
    sim.run(1_200);
    verified = 0;
    sim.run(10_000);
    const { view, executed } = sim.world.state(6).log;
    expect([view, executed > 10]).toEqual([1, true]);
    // Five view changes report ten certificates with five signatures to each of six replicas, and the new view repeats
    // them: 3,000.
    expect(verified).toBeLessThan(1_000);
  });

  it("16 ms a message: the first timeouts are too short, then they adapt and the view stays", () => {
    const { sim, views, executed } = loaded([8, 24]);
    sim.run(7_000);
    const [before, done] = [views(), executed()];
    sim.run(21_000);
    expect(views()).toEqual(before);
    expect(executed() - done).toBeGreaterThan(70);
    expect(sim.violations).toEqual([]);
  });
});

describe("pbft: Byzantine replicas", () => {
  const asked = (seed: number, liar: number, how: ByzantineBehaviour) => {
    const { sim, log, applied } = stage(4, { seed, liars: { [liar]: how }, delayMs: [1, 20] });
    const chance = random(seed);
    for (const node of range(4)) if (node !== liar) sim.command(node, use(1 + chance.below(3)));
    sim.run(30_000);
    return { sim, log, applied, correct: range(4).filter((node) => node !== liar) };
  };

  it.each(["mute", "equivocate", "replay", "withhold", "adversary"] as const)(
    "executes all requests in one order with one %s replica of four, primary or not",
    (how) => {
      for (let seed = 1; seed <= 6; seed++) {
        const { sim, applied, correct } = asked(seed, seed % 4, how);
        expect([seed, sim.violations, sim.verdict()]).toEqual([seed, [], []]);
        const [first, ...others] = correct.map((node) => applied(node));
        for (const other of others) expect([seed, other]).toEqual([seed, first]);
      }
    },
  );

  it("executes nothing with two silent replicas of four", () => {
    const { sim, applied } = stage(4, { liars: { 0: "mute", 3: "mute" } });
    sim.command(1, use(1));
    sim.run(20_000);
    expect([sim.violations, applied(1), applied(2)]).toEqual([[], [], []]);
  });

  it("a client on another node accepts f + 1 equal replies, and no single one", () => {
    const lying: ByzantineBehaviour = "adversary";
    for (let seed = 1; seed <= 10; seed++) {
      const { sim, applied } = stage(5, { log: { clients: 1 }, seed, liars: { 2: lying } });
      sim.command(4, use(3));
      sim.run(20_000);
      expect([seed, sim.verdict(), sim.world.state(4).client.underWay]).toEqual([seed, [], null]);
      expect(applied(0)).toEqual(["4.1", "4.2", "4.3"]);
    }
  });
});

describe("pbft: options", () => {
  it("rejects invalid options", () => {
    expect(() => pbft({ window: 20 })).toThrow(
      "expected pbft.window to be a multiple of checkpointEvery, from 32 to 1024, got 20",
    );
    expect(() => pbft({ maxViewChangeMs: 1 })).toThrow(
      "expected pbft.maxViewChangeMs to be a number >= viewChangeMs, which is 500, got 1",
    );
    expect(() => stage(2, { log: { clients: 2 } })).toThrow(
      "expected pbft.clients to be a number that leaves 1 to 128 of 2 nodes as replicas, got 2",
    );
  });
});
