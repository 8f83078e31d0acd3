/**
 * Checks the claims about bounded delay with random runs. `--timers quiet` never lets a timer overtake a message and
 * never lets two timers race, but a bound on delays allows both. Delays in these runs reach the bound, and timers are
 * longer than it.
 */
import { describe, expect, it } from "vitest";
import { type NodeId, random, type Tagged } from "../../src/core/index.ts";
import { hasToStart, protocolNamed, variantNamed } from "../../src/protocols/index.ts";
import { simulation } from "../../src/sim/index.ts";

interface Setting {
  readonly protocol: string;
  readonly variant?: string;
  readonly options?: object;
  readonly nodes: number;
  /** The largest delay of a message in milliseconds; the smallest is 1. */
  readonly maxDelayMs: number;
  readonly crashes?: 1;
  /** Whether the crashed node restarts. */
  readonly recoveries?: 1;
  readonly lossRate?: number;
  readonly duplicateRate?: number;
  /** The nodes that start the family's work. Empty if starting the nodes is enough. */
  readonly initiators: readonly NodeId[];
  /** The only claimed property. By default all properties are claimed. */
  readonly property?: string;
  readonly forMs: number;
  readonly runs: number;
}

const settings: readonly Setting[] = [
  { protocol: "bully", nodes: 3, maxDelayMs: 60, initiators: [0, 1, 2], forMs: 5_000, runs: 300 },
  { protocol: "bully", nodes: 4, maxDelayMs: 60, crashes: 1, initiators: [0, 1, 2, 3], forMs: 5_000, runs: 300 },
  { protocol: "ring", nodes: 3, maxDelayMs: 60, initiators: [0], forMs: 10_000, runs: 300 },
  { protocol: "ring", nodes: 3, maxDelayMs: 60, crashes: 1, initiators: [0], forMs: 10_000, runs: 300 },
  {
    protocol: "ring",
    property: "E2 liveness",
    nodes: 3,
    maxDelayMs: 60,
    crashes: 1,
    recoveries: 1,
    initiators: [0],
    forMs: 10_000,
    runs: 300,
  },
  { protocol: "elected-server", nodes: 2, maxDelayMs: 30, initiators: [0, 1], forMs: 10_000, runs: 100 },
  {
    protocol: "view-synchrony",
    variant: "settled",
    nodes: 3,
    maxDelayMs: 30,
    crashes: 1,
    initiators: [0, 1],
    forMs: 10_000,
    runs: 60,
  },
  {
    protocol: "isis",
    variant: "flush",
    nodes: 3,
    maxDelayMs: 30,
    crashes: 1,
    initiators: [0, 1],
    forMs: 10_000,
    runs: 25,
  },
  {
    protocol: "basic-multicast",
    variant: "acknowledged",
    nodes: 3,
    maxDelayMs: 20,
    lossRate: 0.1,
    duplicateRate: 0.1,
    initiators: [0],
    forMs: 20_000,
    runs: 200,
  },
  { protocol: "ip-multicast", nodes: 3, maxDelayMs: 4, lossRate: 0.05, initiators: [0], forMs: 10_000, runs: 200 },
  {
    protocol: "super-peer-dht",
    options: { identifierBits: 2, reservedBits: 1, identifiers: [0, 1, 2], successors: 2, contacts: [0] },
    nodes: 3,
    maxDelayMs: 30,
    initiators: [],
    forMs: 20_000,
    runs: 100,
  },
  {
    protocol: "super-peer-dht",
    options: { identifierBits: 2, reservedBits: 1, identifiers: [0, 1, 2], successors: 2, contacts: [0, 1] },
    nodes: 3,
    maxDelayMs: 30,
    crashes: 1,
    initiators: [],
    forMs: 20_000,
    runs: 100,
  },
  {
    protocol: "super-peer-tokens",
    options: { dimensions: 1, share: 0.67, positions: [[0], [0.1], [0.5]] },
    nodes: 3,
    maxDelayMs: 30,
    initiators: [],
    forMs: 20_000,
    runs: 100,
  },
  {
    protocol: "super-peer-tokens",
    options: { dimensions: 1, share: 0.67, positions: [[0], [0.1], [0.5]] },
    nodes: 3,
    maxDelayMs: 30,
    crashes: 1,
    initiators: [],
    forMs: 20_000,
    runs: 100,
  },
];

/** The events that show that a run reached its goal, one for each family. */
const PURPOSES = ["elected", "entered", "delivered"];

/** Runs one seed and returns the names of the violated properties and whether the run reached its goal. */
function ran(setting: Setting, seed: number): { broken: string[]; hasReached: boolean } {
  const { protocol: name, variant = null, options, initiators, forMs, maxDelayMs } = setting;
  const { lossRate = 0, duplicateRate = 0 } = setting;
  const entry = protocolNamed(name);
  const protocol = (variant === null ? entry : variantNamed(name, variant)).model(options);
  const nodes = Array.from({ length: setting.nodes }, (_, node) => node);
  const link = { lossRate, duplicateRate };
  let hasReached = false;
  const onEvent = (_at: number, _node: NodeId, { type, body }: Tagged & { body?: Tagged }) => {
    hasReached ||= PURPOSES.includes(body?.type ?? type);
  };
  const sim = simulation({ protocol, nodes, seed, delayMs: [1, maxDelayMs], link, onEvent });
  const chance = random(seed).stream("what happens");
  for (const node of nodes) {
    if (hasToStart(name, variant)) sim.start(node);
    else sim.wake(node);
  }
  const at = (least: number, most: number): number => least + chance.below(most - least + 1);
  const tell = (node: NodeId, command: Tagged | null): void => {
    if (command !== null && sim.world.alive.includes(node)) sim.command(node, command as never);
  };
  const plan = initiators.map((node) => ({ at: at(0, 300), act: () => tell(node, entry.family.ask(node, 1)) }));
  if (setting.crashes === 1) {
    const crashed = chance.pick(nodes);
    const time = at(0, 500);
    plan.push({ at: time, act: () => sim.crash(crashed) });
    const notification = entry.check.crashNotification?.(crashed) ?? null;
    // A node is suspected only after all messages from the crashed one have arrived.
    for (const node of nodes)
      plan.push({ at: time + at(maxDelayMs + 1, 3 * maxDelayMs), act: () => tell(node, notification) });
    if (setting.recoveries === 1) plan.push({ at: time + at(3 * maxDelayMs + 1, 600), act: () => sim.start(crashed) });
  }
  for (const { at: time, act } of plan.sort((a, b) => a.at - b.at)) {
    sim.run(time);
    act();
  }
  sim.run(forMs);
  const claimed = sim.verdict().filter(({ property }) => property === (setting.property ?? property));
  return { broken: [...new Set(claimed.map(({ property }) => property))], hasReached };
}

describe("with delays within their bounds, and timers above them", () => {
  it.each(settings)(
    "$protocol $variant, $nodes nodes, $crashes crashes, $recoveries recoveries, losses $lossRate",
    (setting) => {
      let reached = 0;
      for (let seed = 1; seed <= setting.runs; seed++) {
        const { broken, hasReached } = ran(setting, seed);
        expect([seed, broken]).toEqual([seed, []]);
        if (hasReached) reached += 1;
      }
      expect(reached).toBeGreaterThan(setting.runs / 2); // A crash may precede the first command.
    },
  );
});

it("detects that bully breaks with delays above the bounds", () => {
  const [, setting] = settings as [Setting, Setting];
  const late = { ...setting, maxDelayMs: 400 };
  const seeds = Array.from({ length: 100 }, (_, seed) => seed + 1);
  expect(seeds.some((seed) => ran(late, seed).broken.length > 0)).toBe(true);
});
