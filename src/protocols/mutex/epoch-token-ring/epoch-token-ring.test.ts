import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MESSAGE_MS, STAY_MS, use } from "../../../../test/protocols/mutex-stage.ts";
import { reaching } from "../../../../test/protocols/reached.ts";
import { range } from "../../../../test/protocols/sizes.ts";
import { type Exploration, type ExploreOptions, explore } from "../../../check/explore.ts";
import type { Protocol } from "../../../core/protocol.ts";
import { step } from "../../../core/step.ts";
import type { SimulationOptions } from "../../../sim/options.ts";
import { type Simulation, simulation } from "../../../sim/simulation.ts";
import type { TraceEntry } from "../../../trace/entry.ts";
import { logLine } from "../../../trace/log.ts";
import { contexts, withContext } from "../../contexts.ts";
import { boundMs } from "../../leases.ts";
import { ENTRIES, fence, type MutexWithWorkload, mutexWithWorkload } from "../family/workload.ts";
import { type EpochTokenRing, type EpochTokenRingOptions, epochTokenRing } from "./epoch-token-ring.ts";

type Used = MutexWithWorkload<EpochTokenRing>;
type Settings = Partial<Omit<SimulationOptions<Used>, "protocol" | "nodes">> & {
  options?: Partial<EpochTokenRingOptions>;
  stayMs?: number;
};

/** How long a node that has seen the token withholds its vote. */
const BOUND_MS = boundMs(600, 0.05);
const RENEW_MS = 200;
const SETTLE_MS = 200_000;

/** All nodes start at the same time, and the first one on the ring calls the first vote. */
function ring(nodes: readonly number[], { options = {}, stayMs = STAY_MS, ...settings }: Settings = {}) {
  const entries: TraceEntry[] = [];
  const sim: Simulation<Used> = simulation<Used>({
    protocol: mutexWithWorkload(epochTokenRing, { workload: { stayMs }, mutex: options }),
    nodes,
    seed: 1,
    delayMs: MESSAGE_MS,
    trace: (entry) => entries.push(entry),
    ...settings,
  });
  for (const node of nodes) sim.start(node);
  const said = (...types: string[]) =>
    entries.flatMap((entry) => {
      if (entry.kind !== "event") return [];
      const { type, token } = (entry.event as unknown as { body: { type: string; token?: number } }).body;
      return types.includes(type) ? [{ node: entry.node, at: entry.at, type, token }] : [];
    });
  return { sim, entries, said };
}

/** Returns tokens in the form "epoch.count". */
const tokensOf = (grants: readonly { token?: number | undefined }[]) =>
  grants.map(({ token = 0 }) => `${Math.floor(token / 2 ** 28)}.${token % 2 ** 28}`);

/** Omits the many laps of the token. */
const storyOf = (entries: readonly TraceEntry[]) =>
  entries
    .map(logLine)
    .filter((line) => !/mutex\.token|mutex\.pass|is now/.test(line))
    .map((line) => `${line}\n`)
    .join("");

type Kind = "crash" | "start" | "cut" | "mend" | "use" | "isolate" | "heal" | "pause" | "resume" | "clock";
type Deed = { at: number; node: number; other: number; kind: Kind };
const deeds = (nodes: number, kinds: readonly Kind[], upTo = 6_000) =>
  fc
    .array(
      fc.record({
        at: fc.nat(upTo),
        node: fc.nat(nodes - 1),
        other: fc.nat(nodes - 1),
        kind: fc.constantFrom(...kinds),
      }),
      { maxLength: 25 },
    )
    .map((list) => list.sort((a, b) => a.at - b.at));

/** Clock rates within the drift that the leases allow. */
const RATES = [1, 1.049, 0.951, 1.02, 0.97];

const whoIsInside = ({ world }: Simulation<Used>): number | undefined =>
  world.alive.find((node) => world.state(node).mutex.section === "held");

function carryOut(sim: Simulation<Used>, script: readonly Deed[], paused: Set<number>): void {
  for (const { at, node, other, kind } of script) {
    sim.run(at);
    const alive = sim.world.alive.includes(node);
    if (kind === "cut" || kind === "mend") node !== other && sim[kind](node, other);
    else if (kind === "isolate") sim.partition([[whoIsInside(sim) ?? node]]);
    else if (kind === "heal") sim.heal();
    else if (kind === "clock") sim.clockRate(node, RATES[other % RATES.length] as number);
    else if (kind === "start") alive || sim.start(node);
    else if (!alive) continue;
    else if (kind === "crash") {
      sim.crash(node);
      paused.delete(node);
    } else if (kind === "use") paused.has(node) || sim.command(node, use(1 + (other % 2)));
    else if (kind === "resume") paused.delete(node) && sim.resume(node);
    else if (kind === "pause" && !paused.has(node)) {
      sim.pause(node);
      paused.add(node);
    }
  }
}

/** Ends all faults. */
function mendAll(sim: Simulation<Used>, nodes: readonly number[], paused: Set<number>): void {
  sim.heal();
  for (const node of paused) sim.resume(node);
  for (const from of nodes)
    for (const to of nodes)
      if (from !== to) sim.setLink(from, to, { lossRate: 0, duplicateRate: 0, delay: MESSAGE_MS });
  for (const node of nodes) sim.world.alive.includes(node) || sim.start(node);
}

/** Runs until all nodes have been served, or until a timeout that represents forever. */
function untilServed(sim: Simulation<Used>): void {
  const isWaiting = () => sim.world.alive.some((node) => sim.world.state(node).workload.doing !== "idle");
  const giveUpAt = sim.now + SETTLE_MS;
  while (isWaiting() && sim.now < giveUpAt) sim.run(sim.now + 500);
}

/**
 * Disconnects the holder while it is inside. Then the other nodes want to enter. The rates apply to the clocks of the
 * holder and of the others.
 */
function cutOff(holderRate: number, othersRate: number, seed: number, aloneAt: number): Simulation<Used> {
  const { sim } = ring([0, 1, 2], { seed, stayMs: 3_000, delayMs: [1, 30] });
  for (const node of [0, 1, 2]) sim.clockRate(node, node === 0 ? holderRate : othersRate);
  sim.command(0, use(1));
  sim.run(100 + aloneAt);
  sim.partition([[0]]);
  for (const node of [1, 2]) sim.command(node, use(1));
  sim.run(6_000);
  return sim;
}

describe("epoch token ring: its story", () => {
  it("the holder crashes inside: a new token has a higher epoch, and a waiting node enters with a higher number", async () => {
    const { sim, entries, said } = ring([1, 2, 3]);
    sim.command(1, use(1));
    sim.run(30);
    sim.command(3, use(1));
    sim.crash(1);
    sim.run(1_000);
    sim.start(1);
    sim.run(1_010);
    sim.command(1, use(1));
    sim.run(3_000);
    const entered = said("entered");
    expect(entered.map(({ node }) => node)).toEqual([1, 3, 1]);
    expect(tokensOf(entered)).toEqual(["1.1", "2.1", "2.2"]);
    // The other nodes saw it when they voted, at 10 ms.
    const replacedMs = (entered[1]?.at ?? 0) - 10;
    expect(replacedMs).toBeGreaterThan(BOUND_MS);
    expect(replacedMs).toBeLessThan(BOUND_MS + RENEW_MS + 6 * MESSAGE_MS + RENEW_MS);
    expect(sim.violations).toEqual([]);
    await expect(storyOf(entries)).toMatchFileSnapshot("../stories/epoch-token-ring-holder-crashes.txt");
  });

  it("a holder that stays inside keeps renewing, and its lease never lapses", async () => {
    const { sim, entries, said } = ring([1, 2, 3], { stayMs: 700 });
    sim.command(2, use(1));
    sim.run(900);
    expect(said("entered", "confirmed", "lost", "exited").map(({ type }) => type)).toEqual([
      ...["entered", "confirmed", "confirmed", "confirmed", "confirmed", "exited"],
    ]);
    expect(sim.world.state(1).mutex.promised).toBe(1);
    await expect(storyOf(entries)).toMatchFileSnapshot("../stories/epoch-token-ring-stays-inside.txt");
  });

  it("a suspected node is skipped, and gets the token again when it is restored", () => {
    const { sim, said } = ring([1, 2, 3]);
    sim.run(100);
    for (const node of [1, 3]) sim.command(node, { type: "mutex", body: { type: "suspect", node: 2 } });
    sim.run(200);
    sim.command(2, use(1));
    sim.run(700);
    expect(said("entered")).toEqual([]);
    for (const node of [1, 3]) sim.command(node, { type: "mutex", body: { type: "restore", node: 2 } });
    sim.run(1_000);
    expect(tokensOf(said("entered"))).toEqual(["1.1"]);
  });

  it("a node that waited disconnected with an outdated token gets the new one, however often it renews its own", () => {
    const { sim, said } = ring([1, 2, 3], { options: { leaseMs: 300, renewMs: 20 } });
    sim.run(9); // 1 has requested votes. 2 and 3 have not received the requests.
    sim.command(2, { type: "mutex", body: { type: "enter" } });
    while (sim.world.state(2).mutex.token === null) sim.run(sim.now + 1);
    sim.partition([[2]]);
    sim.run(2_000);
    const [own = 0, newer = 0] = [2, 3].map((node) => sim.world.state(node).mutex.epoch);
    expect(newer).toBeGreaterThan(own);
    expect(said("entered")).toEqual([]);
    sim.heal();
    sim.run(3_000);
    expect(said("entered")).toMatchObject([{ node: 2 }]);
  });

  it.each([2, 3])(
    "%i nodes, 1 and 2 up: a waiting node whose token no other node accepts discards it, and gets the next one",
    (count) => {
      const { sim, said } = ring(range(1, count));
      if (count === 3) sim.crash(3);
      sim.command(2, use(1));
      while (sim.world.state(2).mutex.token === null) sim.run(sim.now + 1);
      sim.partition([[2]]); // Node 2 receives no confirmation.
      while (sim.world.state(1).mutex.promised < 2) sim.run(sim.now + 1);
      sim.crash(1);
      sim.heal();
      // Node 1 has requested votes for epoch 2, so it no longer accepts the token of epoch 1, and 2 waits for it in
      // vain.
      sim.start(1);
      sim.run(sim.now + 2 * BOUND_MS + 4 * RENEW_MS);
      expect(said("entered")).toMatchObject([{ node: 2 }]);
      expect(sim.verdict()).toEqual([]);
    },
  );

  it("a node that withdraws its request is skipped, and its number is not used again", () => {
    const { sim, said } = ring([1, 2, 3]);
    sim.run(9); // 1 has requested votes. 2 and 3 have not received the requests.
    sim.command(2, { type: "mutex", body: { type: "enter" } });
    sim.run(40); // 2 has the token and asks whether it is valid.
    expect(sim.world.state(2).mutex.token).not.toBeNull();
    sim.command(2, { type: "mutex", body: { type: "exit" } });
    sim.command(3, use(1));
    sim.run(200);
    expect(tokensOf(said("entered"))).toEqual(["1.2"]);
  });
});

describe("epoch token ring: what it costs", () => {
  it.each([2, 3, 7, 16, 31])(
    "N = %i: 2(N − 1) messages to create a token, N per round, and no more for an entry",
    (nodes) => {
      const { sim, said } = ring(range(0, nodes - 1), { stayMs: 1, options: { renewMs: 2_000, leaseMs: 6_000 } });
      sim.run(2 * MESSAGE_MS); // The token has been created.
      const votes = sim.messages.byType;
      expect(votes).toEqual({ requestVote: nodes - 1, voteGranted: nodes - 1 });
      expect(epochTokenRing().costs[1]?.messages(nodes)).toBe(2 * (nodes - 1));
      const rounds = (done: number) => 2 * MESSAGE_MS + done * nodes * (MESSAGE_MS + 5);
      sim.run(rounds(3) - 1);
      expect(sim.messages.byType).toEqual({ ...votes, token: 3 * nodes });
      expect(epochTokenRing().costs[0]?.messages(nodes)).toBe(nodes);
      for (const node of range(0, nodes - 1)) sim.command(node, use(1));
      sim.run(rounds(5)); // A stay inside is shorter than an idle holder's rest.
      expect(said("entered")).toHaveLength(nodes);
      expect(Object.keys(sim.messages.byType).sort()).toEqual(["requestVote", "token", "voteGranted"]);
    },
  );

  it.each([3, 7, 16])("N = %i: 2(N − 1) messages per entry after a slow round, and per renewMs inside", (nodes) => {
    const { sim } = ring(range(0, nodes - 1), { stayMs: 2 * RENEW_MS + 50, options: { idleMs: 100 } });
    sim.command(1, use(1));
    sim.run(2_000);
    const others = nodes - 1;
    expect(sim.messages.byType).toMatchObject({ renew: 3 * others, confirm: 3 * others });
  });
});

describe("epoch token ring: what it guarantees", () => {
  const rough = { delayMs: [1, 60], link: { lossRate: 0.02, duplicateRate: 0.05, order: "none" } } as const;
  const faults = ["crash", "start", "cut", "mend", "isolate", "heal", "use", "use", "use", "clock"] as const;

  it.each([1, 2, 3, 5])(
    "%i nodes: any faults, clocks within the drift: one node inside, tokens grow, all are eventually served",
    (count) => {
      const nodes = range(0, count - 1);
      fc.assert(
        fc.property(fc.nat(), fc.constantFrom(5, 400, 900), deeds(count, faults), (seed, stayMs, script) => {
          const { sim } = ring(nodes, { ...rough, seed, stayMs });
          const paused = new Set<number>();
          carryOut(sim, script, paused);
          mendAll(sim, nodes, paused);
          for (const node of nodes) sim.command(node, use(1));
          untilServed(sim);
          expect(sim.verdict()).toEqual([]);
        }),
        { numRuns: 60 },
      );
    },
  );

  it("a disconnected holder learns that it has lost its permission before another node enters", () => {
    const rate = fc.double({ min: 0.951, max: 1.049, noNaN: true });
    fc.assert(
      fc.property(fc.nat(), fc.nat(700), rate, rate, (seed, aloneAt, holderRate, othersRate) => {
        const sim = cutOff(holderRate, othersRate, seed, aloneAt);
        expect(sim.violations).toEqual([]);
        expect(sim.events(0)).toContainEqual({ type: "mutex", body: { type: "lost", token: 2 ** 28 + 1 } });
        expect([1, 2].map((node) => sim.world.state(node).workload.entries)).not.toEqual([0, 0]);
      }),
      { numRuns: 200 },
    );
  });

  it("two nodes are inside if the holder's clock runs at half speed, and the newer one has the higher token", () => {
    const sim = cutOff(0.5, 1, 1, 0);
    expect(sim.violations.map(({ property }) => property)).toEqual(["ME1 safety", "tokens grow"]);
    expect(sim.world.state(0).workload.token).toBe(2 ** 28 + 1);
    expect(sim.world.state(1).workload.token).toBeGreaterThan(2 ** 29);
  });

  it("a paused process does not notice the loss of its permission: two nodes are inside, never with the same token", () => {
    const standing = ["pause", "resume", "crash", "start", "cut", "mend", "use", "use"] as const;
    const always = ["one token an epoch"];
    fc.assert(
      fc.property(fc.nat(), deeds(3, standing), (seed, script) => {
        const { sim, said } = ring([0, 1, 2], { ...rough, seed, stayMs: 400 });
        carryOut(sim, script, new Set());
        expect(sim.violations.filter(({ property }) => always.includes(property))).toEqual([]);
        const granted = said("entered").map(({ token }) => token);
        expect(new Set(granted).size).toBe(granted.length);
      }),
      { numRuns: 100 },
    );
  });

  it("a duplicate of the token that reaches the next run of its receiver is taken for the token, and two exist", () => {
    const { sim } = ring([1, 2, 3]);
    while (sim.world.state(3).mutex.token === null) sim.run(sim.now + 1);
    sim.crash(2);
    sim.start(2);
    const copy: EpochTokenRing["message"] = { type: "token", epoch: 1, hops: 1, entries: 0, skipped: [], lap: [1] };
    const tokenAt = (state: EpochTokenRing["state"]) => (state.token === null ? null : state.epoch);
    const now = (node: number) => sim.world.state(node).mutex;
    expect([tokenAt(now(2)), tokenAt(now(3))]).toEqual([null, 1]);
    const { state } = step(epochTokenRing(), { self: 2, peers: [1, 3] }, now(2), {
      kind: "receive",
      from: 1,
      message: copy,
    });
    expect([tokenAt(state), tokenAt(now(3))]).toEqual([1, 1]);
  });

  it.each<[Partial<EpochTokenRingOptions>, string]>([
    [{ ring: [1, 2] }, "expected epoch-token-ring.ring to be every node once, got [1,2]"],
    [{ renewMs: 600 }, "expected epoch-token-ring.renewMs to be a number below leaseMs, which is 600, got 600"],
  ])("rejects the options %j", (options, sentence) => {
    expect(() => ring([1, 2, 3], { options })).toThrow(sentence);
  });
});

/**
 * Explores runs in which all nodes start at the same time. A bound on timeouts cuts runs off, so the verdict on a
 * property without violations is `unknown`.
 */
function exploring(more: Partial<ExploreOptions<Used>>, property = "one token an epoch", reached = "entered") {
  const protocol = mutexWithWorkload(epochTokenRing);
  return reaching(
    explore<Used>({
      protocol,
      nodes: [0, 1, 2],
      network: "fifo",
      timers: "free",
      begin: "together",
      properties: protocol.properties.filter(({ name }) => name === property),
      ...more,
    }),
    reached,
  );
}

/** Formats a counterexample, one move per line. */
const movesOf = (path: Exploration<Used>["path"]): string[] =>
  path.map(({ move }) => {
    if (move.kind === "receive") return `${move.node} receive ${move.message.body.type} from ${move.from}`;
    return move.kind === "timeout" ? `${move.node} timeout ${move.timer}` : `${move.node} ${move.kind}`;
  });

describe("epoch token ring: every run of 3 nodes", () => {
  const keepsOneToken = (faults: { losses: number; maxTimeouts: number }, found: number): void => {
    const { verdict, property, states } = exploring(
      { crashes: 1, recoveries: 1, ...faults },
      "one token an epoch",
      "receive voteGranted", // The last of them creates a token.
    );
    // No violation was found. Runs with more timeouts were cut off.
    expect([verdict, property, states]).toEqual(["unknown", null, found]);
  };

  it("with a crash, a recovery and two timeouts there is one token per epoch", () =>
    keepsOneToken({ losses: 0, maxTimeouts: 2 }, 54_351));

  it("with a crash, a recovery, a loss and two timeouts there is one token per epoch", { tags: ["long"] }, () =>
    keepsOneToken({ losses: 1, maxTimeouts: 2 }, 160_193),
  );

  it("if no node gives up, and one crashes and recovers: one token per epoch, one node inside, and growing tokens", () => {
    const asks = () => [use(1)];
    // If tokens are compared, the entries of a crashed node are part of the state.
    for (const [property, count] of [
      ["one token an epoch", 1_471],
      ["ME1 safety", 1_407],
      ["tokens grow", 1_471],
    ] as const) {
      const { verdict, states } = exploring({ timers: "never", crashes: 1, recoveries: 1, losses: 1, asks }, property);
      expect([property, verdict, states]).toEqual([property, "holds", count]);
    }
  });

  it("detects a token that is reused after its holder has crashed inside", () => {
    const numbered = contexts((ctx) => ({
      emit(event) {
        const said = event as EpochTokenRing["event"];
        if (said.type === "entered") said.token = fence(1, said.token % ENTRIES);
        ctx.emit(said);
      },
    }));
    const careless = mutexWithWorkload(() => withContext(epochTokenRing(), numbered) as Protocol<EpochTokenRing>);
    const sim = simulation<Used>({ protocol: careless, nodes: [0, 1, 2], seed: 1, delayMs: 1 });
    for (const node of [0, 1, 2]) sim.start(node);
    sim.run(100);
    sim.command(0, use(1));
    while (sim.world.state(0).workload.doing !== "inside") sim.step();
    sim.crash(0);
    sim.command(1, use(1));
    sim.run(5_000);
    expect(sim.world.state(1).workload.entries).toBe(1);
    expect(sim.violations.map(({ property }) => property)).toContain("one token an epoch");
  });

  it("a crash that loses the journal: a node votes twice in an epoch, which then has two tokens", () => {
    const { path } = exploring({ crashes: 1, recoveries: 1, maxTimeouts: 2, journal: "lost" });
    expect(movesOf(path)).toEqual([
      ...["0 start", "1 start", "2 start", "1 receive requestVote from 0", "0 receive voteGranted from 1"],
      ...[
        "1 crash",
        "1 start",
        "1 timeout mutex.watch",
        "2 receive requestVote from 1",
        "1 receive voteGranted from 2",
      ],
    ]);
  });

  it("with leases that expire at any time two nodes are inside: ME1 depends on clocks", () => {
    const { property, path } = exploring({ maxTimeouts: 2, asks: () => [use(1)] }, "ME1 safety");
    expect(property?.name).toBe("ME1 safety");
    const epochs = path.at(-1)?.states.map((state) => state?.mutex.section === "held" && state.mutex.epoch);
    expect(epochs).toEqual([1, 2, false]);
  });
});

describe("epoch token ring: a restarted node", () => {
  /**
   * Node 0 is inside and disconnected. Nodes 1 and 2, which confirmed its lease, crash and recover immediately, and 1
   * wants to enter.
   */
  function restarted(ring: Protocol<EpochTokenRing>) {
    const protocol: Protocol<Used> = mutexWithWorkload<EpochTokenRing, object>(() => ring, {
      workload: { stayMs: 500 },
    });
    const sim = simulation<Used>({ protocol, nodes: [0, 1, 2], seed: 1, delayMs: 1 });
    for (const node of [0, 1, 2]) sim.start(node);
    sim.run(100);
    sim.command(0, use(1));
    sim.run(120);
    expect(sim.world.state(0).mutex.section).toBe("held");
    sim.partition([[0], [1, 2]]);
    for (const node of [1, 2]) {
      sim.crash(node);
      sim.start(node);
    }
    sim.command(1, use(1));
    sim.run(5_000);
    expect(sim.world.state(1).workload.entries).toBe(1);
    return sim.violations.map(({ property }) => property);
  }

  it("votes for no other token for a lease and its margin, because it may have confirmed a lease", () => {
    expect(restarted(epochTokenRing())).toEqual([]);
  });

  it("would let two nodes in if it did not wait: ME1 depends on that wait", () => {
    const plain = epochTokenRing();
    const hasty: Protocol<EpochTokenRing> = {
      ...plain,
      start(state, ctx) {
        if (state.promised === 0) plain.start?.(state, ctx);
        else ctx.setTimer("watch", [1, 200]);
      },
    };
    expect(restarted(hasty)).toContain("ME1 safety");
  });
});

it.each([
  [{ leaseMs: 100, renewMs: 50 }, BOUND_MS],
  [{ leaseMs: 6_000 }, boundMs(6_000, 0.05)],
])(
  "a node that restarts with %o keeps its vote for %d ms, because the lock may have had the default lease before",
  (options, expected) => {
    const protocol = epochTokenRing(options);
    const at = { self: 2, peers: [1, 3] };
    const record = { type: "promised", epoch: 3, to: null } as const;
    const { state } = step(protocol, at, protocol.init(at.self, at.peers), { kind: "replay", record });
    const { effects } = step(protocol, at, state, { kind: "start" });
    expect(effects).toEqual([{ kind: "setTimer", timer: "watch", duration: expected }]);
  },
);
