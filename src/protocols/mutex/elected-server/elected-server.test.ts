import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MESSAGE_MS, STAY_MS, use } from "../../../../test/protocols/mutex-stage.ts";
import { range } from "../../../../test/protocols/sizes.ts";
import type { SimulationOptions } from "../../../sim/options.ts";
import { type Simulation, simulation } from "../../../sim/simulation.ts";
import type { TraceEntry } from "../../../trace/entry.ts";
import { logLine } from "../../../trace/log.ts";
import { boundMs } from "../../leases.ts";
import { type ElectedServer, type ElectedServerOptions, electedServer } from "./elected-server.ts";
import { lockService } from "./lock-service.ts";

type Settings = Partial<Omit<SimulationOptions<ElectedServer>, "protocol" | "nodes">> & {
  options?: ElectedServerOptions;
};

const LEASE_MS = 1_000;
/** The bound for clocks that are off by at most 5 %. */
const RECLAIM_MS = boundMs(LEASE_MS, 0.05);

/** All nodes start at the same time. By 500 ms a leader has been elected and serves. */
const SETTLED_MS = 500;

function cluster(count: number, { options = {}, ...settings }: Settings = {}) {
  const nodes = range(0, count - 1);
  const entries: TraceEntry[] = [];
  const sim: Simulation<ElectedServer> = simulation<ElectedServer>({
    protocol: electedServer({ ...options, workload: { stayMs: STAY_MS, ...options.workload } }),
    nodes,
    seed: 1,
    delayMs: MESSAGE_MS,
    trace: (entry) => entries.push(entry),
    ...settings,
  });
  for (const node of nodes) sim.start(node);
  sim.run(SETTLED_MS);
  const said = (...types: string[]) =>
    entries.flatMap((entry) => {
      if (entry.kind !== "event") return [];
      const { type: part, body } = entry.event as unknown as { type: string; body: { type: string; token?: number } };
      return part === "mutex" && types.includes(body.type) ? [{ node: entry.node, at: entry.at, ...body }] : [];
    });
  return { nodes, sim, entries, said };
}

const serving = ({ world }: Simulation<ElectedServer>): number =>
  world.alive.find((node) => world.state(node).mutex.service !== null) as number;

const faults = ["crash", "start", "isolate", "oneWay", "heal", "use", "use", "use", "clock"] as const;
type Deed = { at: number; node: number; other: number; kind: (typeof faults)[number] };

const scripts = (count: number) =>
  fc
    .array(
      fc.record({
        at: fc.integer({ min: SETTLED_MS, max: 8_000 }),
        node: fc.nat(count - 1),
        other: fc.nat(count - 1),
        kind: fc.constantFrom(...faults),
      }),
      { maxLength: 25 },
    )
    .map((list) => list.sort((a, b) => a.at - b.at));

/** Clock rates within the drift that the leases allow. */
const RATES = [1, 0.951, 1.049, 0.98, 1.02];

function carryOut(sim: Simulation<ElectedServer>, { at, node, other, kind }: Deed): void {
  sim.run(at);
  const { alive } = sim.world;
  const isUp = alive.includes(node);
  const holder = alive.find((each) => sim.world.state(each).mutex.section === "held");
  if (kind === "start" && !isUp) sim.start(node);
  else if (kind === "crash" && isUp) sim.crash(node);
  else if (kind === "use" && isUp) sim.command(node, use(1 + (other % 2)));
  else if (kind === "isolate") sim.partition([[other % 2 === 0 ? node : (holder ?? serving(sim) ?? node)]]);
  else if (kind === "oneWay" && node !== other) sim.cut(node, other);
  else if (kind === "heal") sim.heal();
  else if (kind === "clock") sim.clockRate(node, RATES[other % RATES.length] as number);
}

/** Ends all faults and runs until all nodes have been served, or until a timeout that represents forever. */
function settle(sim: Simulation<ElectedServer>, nodes: readonly number[]): void {
  sim.heal();
  for (const from of nodes) {
    for (const to of nodes) {
      if (from !== to) sim.setLink(from, to, { lossRate: 0, duplicateRate: 0, delay: MESSAGE_MS });
    }
  }
  for (const node of nodes) if (!sim.world.alive.includes(node)) sim.start(node);
  for (const node of nodes) sim.command(node, use(1));
  sim.run(sim.now + 5_000); // This is enough for the election too.
  const giveUpAt = sim.now + 100_000;
  const isWaiting = () => sim.world.alive.some((node) => sim.world.state(node).workload.doing !== "idle");
  while (isWaiting() && sim.now < giveUpAt) sim.run(sim.now + 500);
}

/** Whether a line is about the lock service. The election has its own stories. */
const isOfLockService = (line: string): boolean => / mutex\.|crashes|reaches nobody/.test(line);

describe("elected server: stories", () => {
  /** Node 4 leads because it has the highest id. */
  async function tell(name: string, script: (sim: Simulation<ElectedServer>) => void, stayMs: number) {
    const { sim, entries, said } = cluster(5, { options: { workload: { stayMs } } });
    entries.length = 0;
    script(sim);
    const lines = entries.map((entry) => logLine(entry)).filter(isOfLockService);
    const story = lines.slice(0, lines.findLastIndex((line) => line.includes("mutex.entered")) + 1);
    await expect(story.map((line) => `${line}\n`).join("")).toMatchFileSnapshot(
      `../stories/elected-server-${name}.txt`,
    );
    expect(sim.verdict()).toEqual([]);
    return said;
  }

  it("the server crashes while 1 is inside: 1 stays inside under the next server, and 2 enters when it leaves", async () => {
    const said = await tell(
      "server-crashes",
      (sim) => {
        sim.command(1, use(1));
        sim.run(600);
        sim.crash(4);
        sim.command(2, use(1));
        sim.run(3_000);
      },
      800,
    );
    expect(said("entered", "lost", "exited").map(({ node, type }) => `${node} ${type}`)).toEqual([
      "1 entered",
      "1 exited",
      "2 entered",
      "2 exited",
    ]);
  });

  it("the holder crashes: its permission is reclaimed when the lease has expired", async () => {
    const said = await tell(
      "holder-crashes",
      (sim) => {
        sim.command(1, use(1));
        sim.run(600);
        sim.command(2, use(1));
        sim.crash(1);
        sim.run(2_500);
      },
      500,
    );
    const [first, second] = said("entered");
    expect([first?.node, second?.node]).toEqual([1, 2]);
    // The lease began when node 1's request reached the server, 10 ms before node 1 entered. Node 2's grant also takes
    // 10 ms.
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBe(RECLAIM_MS);
  });

  it("the holder is disconnected: it learns that it has lost its permission before 2 gets it", async () => {
    const said = await tell(
      "holder-cut-off",
      (sim) => {
        sim.command(1, use(1));
        sim.run(800);
        sim.partition([[1]]);
        sim.command(2, use(1));
        sim.run(2_500);
        sim.heal();
        sim.run(6_000);
      },
      3_000,
    );
    const [entered, lost, next] = said("entered", "lost");
    expect([entered?.type, lost?.type, next?.type]).toEqual(["entered", "lost", "entered"]);
    expect([lost?.node, next?.node]).toEqual([1, 2]);
    expect((next?.at ?? 0) - (lost?.at ?? 0)).toBeGreaterThan(RECLAIM_MS - LEASE_MS);
  });
});

describe("elected server: what it costs", () => {
  /** Messages of the lock service. The election's messages are counted separately. */
  const spent = ({ messages: { byType } }: Simulation<ElectedServer>) =>
    Object.fromEntries(words.flatMap((word) => ((byType[word] ?? 0) === 0 ? [] : [[word, byType[word]]])));
  const words = ["request", "grant", "renew", "renewed", "release", "withdraw", "recall", "empty"];

  it.each([2, 3, 5, 9, 16])("N = %i: 3 messages per entry, none for the server itself", (count) => {
    const { sim } = cluster(count);
    sim.run(2_000); // Any grants of earlier servers have expired.
    sim.command(0, use(1));
    sim.run(2_150);
    expect(spent(sim)).toEqual({ request: 1, grant: 1, release: 1 });
    expect(lockService().costs[0]?.messages(count)).toBe(3);
    sim.command(serving(sim), use(1));
    sim.run(2_300);
    expect(spent(sim)).toEqual({ request: 1, grant: 1, release: 1 });
  });

  it("one more request per renewMs of waiting, a renewal and its reply per renewMs inside", () => {
    const { sim, said } = cluster(3, { options: { workload: { stayMs: 2_000 } } });
    sim.run(2_000);
    sim.command(0, use(1));
    sim.run(2_050);
    sim.command(1, use(1));
    sim.run(6_400);
    expect(said("exited")).toHaveLength(2);
    // Node 1 waits for 1,980 ms and sends 10 requests. Both nodes stay for 2,000 ms, which takes 10 renewals each.
    expect(spent(sim)).toMatchObject({ request: 11, grant: 2, release: 2 });
    expect(spent(sim)).toMatchObject({ renew: 20, renewed: 20 });
  });

  it.each([3, 5, 9])(
    "N = %i: 2(N − 1) minus the requester's own for a change of server, when a node wants to enter",
    (count) => {
      const { sim, said } = cluster(count);
      sim.command(0, use(1));
      sim.run(1_000);
      expect(said("entered")).toHaveLength(1);
      expect(spent(sim)).toEqual({ request: 1, grant: 1, release: 1, recall: count - 2, empty: count - 2 });
    },
  );
});

describe("elected server: what it guarantees", () => {
  const rough = { delayMs: [1, 60], link: { lossRate: 0.02, duplicateRate: 0.05, order: "none" } } as const;

  const title =
    "%i nodes: any faults, clocks within the drift: one node inside, tokens grow, all are eventually served";
  it.each([1, 2, 3, 5])(title, (count) => serves(count, 15));
  it.each([1, 2, 3, 5])(`${title}: longer`, { tags: ["larger"] }, (count) => serves(count, 150));

  /** A few delays are long, so duplicates arrive several entries later. */
  it("duplicates that are several entries late: one node inside, tokens grow, and all are served", () => {
    const delayMs = { logNormal: { medianMs: 15, sigma: 1.7 } } as const;
    const link = { delay: delayMs, duplicateRate: 0.4, order: "none" } as const;
    fc.assert(
      fc.property(fc.nat(), fc.constantFrom(5, 60), (seed, stayMs) => {
        const { sim, nodes, said } = cluster(3, { seed, options: { workload: { stayMs } } });
        for (const from of nodes) for (const to of nodes) if (from !== to) sim.setLink(from, to, link);
        for (const node of nodes) sim.command(node, use(8));
        sim.run(sim.now + 4_000);
        settle(sim, nodes);
        expect(sim.verdict()).toEqual([]);
        const tokens = said("entered").map(({ token = 0 }) => token);
        expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      }),
      { numRuns: 20 },
    );
  });

  function serves(count: number, numRuns: number): void {
    fc.assert(
      fc.property(fc.nat(), fc.constantFrom(5, 400, 1_500), scripts(count), (seed, stayMs, script) => {
        const { sim, nodes, said } = cluster(count, { ...rough, seed, options: { workload: { stayMs } } });
        for (const deed of script) carryOut(sim, deed);
        settle(sim, nodes);
        expect(sim.verdict()).toEqual([]);
        const tokens = said("entered").map(({ token = 0 }) => token);
        expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      }),
      { numRuns },
    );
  }
});

/**
 * Disconnects the holder while it is inside, and makes the other nodes want to enter. The rates apply to the clocks of
 * the holder and of the others.
 */
function cutOff(holderRate: number, othersRate: number, seed: number, aloneAt: number): Simulation<ElectedServer> {
  const { sim } = cluster(3, { seed, delayMs: [1, 30], options: { workload: { stayMs: 4_000 } } });
  for (const node of [0, 1, 2]) sim.clockRate(node, node === 0 ? holderRate : othersRate);
  sim.command(0, use(1));
  sim.run(SETTLED_MS + 200 + aloneAt);
  sim.partition([[0]]);
  sim.command(1, use(1));
  sim.run(4_000);
  return sim;
}

const tokensOf = (sim: Simulation<ElectedServer>): number[] =>
  sim.world.alive.map((node) => sim.world.state(node).workload.token).filter((token) => token > 0);

describe("elected server: details", () => {
  it("when the tokens of an epoch are used up, the server is re-elected, and no node waits long", () => {
    const { sim, said } = cluster(3);
    sim.run(2_000);
    Object.assign(sim.world.state(2).mutex.service ?? {}, { grants: 2 ** 28 - 2 });
    sim.command(0, use(2));
    sim.run(5_000);
    expect(said("entered").map(({ token }) => token)).toEqual([2 ** 29 - 1, 2 * 2 ** 28 + 1]);
    expect(said("exhausted")).toHaveLength(1);
    expect(sim.violations).toEqual([]);
  });

  it("a suspected node loses its place in the queue, and repeats its request if it is alive", () => {
    const { sim, said } = cluster(4, { options: { workload: { stayMs: 300 } } });
    for (const node of [0, 1, 2]) {
      sim.command(node, use(1));
      sim.run(sim.now + 20);
    }
    sim.command(3, { type: "mutex", body: { type: "suspect", node: 1 } });
    sim.run(3_000);
    expect(said("entered").map(({ node }) => node)).toEqual([0, 2, 1]);
  });

  it("a node that withdraws its request is skipped", () => {
    const { sim, said } = cluster(3);
    sim.command(0, use(1));
    sim.run(sim.now + 50);
    sim.command(1, { type: "mutex", body: { type: "enter" } });
    sim.run(sim.now + 15);
    sim.command(1, { type: "mutex", body: { type: "exit" } });
    sim.run(2_000);
    expect(said("entered", "exited").map(({ node, type }) => `${node} ${type}`)).toEqual(["0 entered", "0 exited"]);
    expect(sim.messages.byType.withdraw).toBe(1);
  });

  it.each<[ElectedServerOptions, string]>([
    [{ mutex: { renewMs: 2_000 } }, "expected elected-server.renewMs to be a number below leaseMs, which is 1000"],
  ])("rejects the options %j", (options, sentence) => {
    expect(() => electedServer(options)).toThrow(sentence);
  });
});

describe("elected server: ME1 depends on clocks", () => {
  it("a disconnected holder learns that it has lost its permission before another node enters", () => {
    const rate = fc.double({ min: 0.951, max: 1.049, noNaN: true });
    fc.assert(
      fc.property(fc.nat(), fc.nat(700), rate, rate, (seed, aloneAt, holderRate, othersRate) => {
        const sim = cutOff(holderRate, othersRate, seed, aloneAt);
        expect(sim.violations).toEqual([]);
        expect(sim.events(0).map(({ body: { type } }) => type)).toContain("lost");
        expect(sim.world.state(1).workload.entries).toBe(1);
      }),
      { numRuns: 100 },
    );
  });

  it("two nodes are inside if the holder's clock runs at half speed, and the newer one has the higher token", () => {
    const sim = cutOff(0.5, 1, 1, 300);
    expect(sim.violations.map(({ property }) => property)).toContain("ME1 safety");
    const [older = 0, newer = 0] = tokensOf(sim);
    expect(newer).toBeGreaterThan(older);
  });

  it("without its journal a node cannot distinguish its runs, and the same token is used twice", () => {
    const tokensAfter = (journal: "kept" | "lost"): (number | undefined)[] => {
      const { sim, said } = cluster(3, { options: { workload: { stayMs: 200 } } });
      sim.command(0, use(1));
      sim.run(600);
      sim.crash(0, { journal });
      sim.start(0);
      sim.run(700); // Node 0 learns which node serves.
      sim.command(0, use(1));
      sim.run(3_000);
      return said("entered").map(({ token }) => token);
    };
    const [kept, again] = tokensAfter("kept");
    expect(again).toBe((kept ?? 0) + 1);
    expect(tokensAfter("lost")).toEqual([kept, kept]);
  });

  it("the same token is never used twice, with any clocks and any pauses", () => {
    const rate = fc.double({ min: 0.2, max: 5, noNaN: true });
    fc.assert(
      fc.property(fc.nat(), fc.array(rate, { minLength: 3, maxLength: 3 }), scripts(3), (seed, rates, script) => {
        const { sim, said } = cluster(3, { seed, delayMs: [1, 60], options: { workload: { stayMs: 1_200 } } });
        for (const [node, each] of rates.entries()) sim.clockRate(node, each);
        for (const deed of script) {
          carryOut(sim, deed);
          const { alive } = sim.world;
          if (deed.kind !== "clock" || !alive.includes(deed.node)) continue;
          sim.pause(deed.node);
          sim.run(sim.now + 700 * deed.other);
          sim.resume(deed.node);
        }
        sim.run(sim.now + 5_000);
        expect(sim.violations.map(({ property }) => property)).not.toContain("tokens are unique");
        const tokens = said("entered").map(({ token }) => token);
        expect(new Set(tokens).size).toBe(tokens.length);
      }),
      { numRuns: 60 },
    );
  });
});
