import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { NodeId, Protocol, Vocabulary } from "../../core/protocol.ts";
import { step } from "../../core/step.ts";
import { type Simulation, simulation } from "../../sim/simulation.ts";
import { type MonitoredBully, monitoredBully, monitoredChangRoberts, monitoredRing } from "./monitored.ts";

const NODES = 5;
/** Longer than detection, election and the correction of a missed bound together. */
const SETTLE_MS = 5_000;

function stage(seed: number, delayMs: readonly [number, number] = [1, 50]): Simulation<MonitoredBully> {
  const nodes = Array.from({ length: NODES }, (_, i) => i);
  const sim = simulation<MonitoredBully>({ protocol: monitoredBully(), nodes, seed, delayMs });
  for (const node of nodes) sim.start(node);
  return sim;
}

const leaders = (sim: Simulation<MonitoredBully>) =>
  new Set(sim.world.alive.map((node) => sim.world.state(node).election.leader));

type Kind = "crash" | "start" | "cut" | "mend" | "call" | "resign" | "stand";
type Deed = { at: number; node: NodeId; other: NodeId; kind: Kind };
const deeds = (...kinds: Kind[]) =>
  fc
    .array(
      fc.record({
        at: fc.nat(4_000),
        node: fc.nat(NODES - 1),
        other: fc.nat(NODES - 1),
        kind: fc.constantFrom(...kinds),
      }),
      { maxLength: 12 },
    )
    .map((list) => list.sort((a, b) => a.at - b.at));

function apply(sim: Simulation<MonitoredBully>, { at, node, other, kind }: Deed): void {
  sim.run(at);
  const alive = sim.world.alive.includes(node);
  if (kind === "cut" || kind === "mend") {
    if (node !== other) sim[kind](node, other);
  } else if (kind === "start") alive || sim.start(node);
  else if (kind === "crash") alive && sim.crash(node);
  else if (alive) sim.command(node, { type: "election", body: { type: kind } });
}

function mendAll(sim: Simulation<MonitoredBully>): void {
  for (let from = 0; from < NODES; from++) for (let to = 0; to < NODES; to++) if (from !== to) sim.mend(from, to);
}

describe("bully with a failure detector", () => {
  const scripts: [string, Kind[]][] = [
    ["crashed, recovered or was cut off", ["crash", "start", "cut", "mend", "call"]],
    ["crashed, recovered, resigned or became a candidate again", ["crash", "start", "resign", "stand", "call"]],
  ];
  const title = "converges to one leader, the highest alive candidate, after nodes %s";
  it.each(scripts)(title, (_what, kinds) => comesToOneLeader(kinds, 60));
  it.each(scripts)(`${title}: longer`, { tags: ["larger"] }, (_what, kinds) => comesToOneLeader(kinds, 600));

  function comesToOneLeader(kinds: Kind[], numRuns: number): void {
    fc.assert(
      fc.property(fc.nat(), deeds(...kinds), (seed, script) => {
        const sim = stage(seed);
        for (const deed of script) apply(sim, deed);
        mendAll(sim);
        sim.run(sim.now + SETTLE_MS);
        const standing = sim.world.alive.filter((node) => !sim.world.state(node).election.resigned.includes(node));
        if (standing.length === 0) return;
        expect(leaders(sim)).toEqual(new Set([Math.max(...standing)]));
        expect(sim.verdict().filter(({ property }) => property.startsWith("detector"))).toEqual([]);
      }),
      { numRuns },
    );
  }

  it("repairs the effects of a missed bound: answers after T elect wrong leaders, which do not last", () => {
    let wrong = 0;
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const sim = stage(seed, [1, 240]); // A round trip takes up to 480 ms, and T is 180 ms.
        for (const at of [100, 200, 300]) {
          sim.run(at);
          wrong += [...leaders(sim)].some((leader) => leader !== null && leader < NODES - 1) ? 1 : 0;
        }
        sim.run(10_000);
        expect(leaders(sim)).toEqual(new Set([NODES - 1]));
      }),
      { numRuns: 50 },
    );
    expect(wrong).toBeGreaterThan(0);
  });

  it("a partition has a leader on each side, and a single leader after it heals", () => {
    const sim = stage(3);
    sim.run(1_000);
    for (const a of [0, 1, 2]) for (const b of [3, 4]) [sim.cut(a, b), sim.cut(b, a)];
    sim.run(3_000);
    expect(sim.world.alive.map((node) => sim.world.state(node).election.leader)).toEqual([2, 2, 2, 4, 4]);
    mendAll(sim);
    sim.run(5_000);
    expect(leaders(sim)).toEqual(new Set([4]));
  });

  it("fails over in under a second of virtual time with default options", () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(99), (seed, offset) => {
        const sim = stage(seed, [0, 5]);
        sim.run(2_000 + offset);
        sim.crash(NODES - 1);
        sim.run(sim.now + 1_000);
        expect(leaders(sim)).toEqual(new Set([NODES - 2]));
      }),
      { numRuns: 50 },
    );
  });

  it("rejects options for an unknown part", () => {
    expect(() => monitoredBully({ elction: {} } as never)).toThrow(
      'expected the options of bully to be for detector or election, got "elction"',
    );
  });

  it("treats any message from a node as a sign of life: a followed node is monitored again", () => {
    const protocol = monitoredBully();
    const node = { self: 2, peers: [0, 1, 3, 4] };
    const coordinator = (from: NodeId) =>
      ({ kind: "receive", from, message: { type: "election", body: { type: "coordinator" } } }) as const;
    const following3 = step(protocol, node, protocol.init(2, node.peers), coordinator(3)).state;
    expect(following3.detector.peers[4]?.status).toBe("suspected"); // The cause is the announcement of 3.
    const following4 = step(protocol, node, following3, coordinator(4)).state;
    expect(following4.detector.peers[4]?.status).toBe("trusted");
    expect(following4.election.leader).toBe(4);
    // No heartbeat from 4 arrives, so it is suspected again, and an election is called.
    let state = following4;
    for (let beat = 0; beat < 5; beat++)
      state = step(protocol, node, state, { kind: "timeout", timer: "detector.beat" }).state;
    expect(state.election.leader).not.toBe(4);
  });
});

describe("the ring elections with a failure detector", () => {
  const nodes = Array.from({ length: NODES }, (_, i) => i);
  const elections = [
    ["ring", monitoredRing],
    ["chang-roberts", monitoredChangRoberts],
  ] as const;

  /** Creates a stage for either algorithm, since both are driven and inspected in the same way. */
  function staged(protocol: unknown, seed: number) {
    const sim = simulation<Vocabulary>({ protocol: protocol as Protocol<Vocabulary>, nodes, seed, delayMs: [1, 50] });
    for (const node of nodes) sim.start(node);
    const views = () =>
      new Set(
        sim.world.alive.map((node) => (protocol as Protocol<Vocabulary>).view(sim.world.state(node), node).leader),
      );
    return { sim, views };
  }

  // Chang–Roberts has no timers, so messages lost to a cut link or an undetected crash are not sent again.
  it.each<["ring" | "chang-roberts", number, string, Kind[]]>([
    ["ring", 0, "crashed, recovered or was cut off", ["crash", "start", "cut", "mend", "call"]],
    ["chang-roberts", 1_000, "crashed and recovered, once that was noticed", ["crash", "start", "call"]],
  ])(
    "%s, with %i ms before a restart, converges to the highest alive node, although nodes %s",
    (name, noticedMs, _what, kinds) => {
      fc.assert(
        fc.property(fc.nat(), deeds(...kinds), (seed, script) => {
          const { sim, views } = staged(Object.fromEntries(elections)[name]?.(), seed);
          for (const deed of script) {
            if (deed.kind === "start") sim.run(sim.now + noticedMs);
            apply(sim, { ...deed, at: Math.max(deed.at, sim.now) });
          }
          mendAll(sim);
          sim.run(sim.now + SETTLE_MS);
          const [caller] = sim.world.alive; // Chang–Roberts does nothing until a node calls an election.
          if (caller === undefined) return;
          sim.command(caller, { type: "election", body: { type: "call" } } as never);
          sim.run(sim.now + SETTLE_MS);
          expect(views()).toEqual(new Set([Math.max(...sim.world.alive)]));
        }),
        { numRuns: 60 },
      );
    },
  );

  it.each(elections)("%s replaces a crashed leader, and a crashed neighbor", (_, made) => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const { sim, views } = staged(made(), seed);
        sim.command(0, { type: "election", body: { type: "call" } } as never);
        sim.run(3_000);
        expect(views()).toEqual(new Set([4]));
        sim.crash(4);
        sim.run(6_000);
        expect(views()).toEqual(new Set([3]));
        sim.crash(1);
        sim.run(9_000);
        expect(views()).toEqual(new Set([3]));
      }),
      { numRuns: 30 },
    );
  });
});
