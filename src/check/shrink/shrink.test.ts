import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonical } from "../../core/plain.ts";
import type { NodeId, Protocol, StateProperty, Vocabulary } from "../../core/protocol.ts";
import { type Bully, bully } from "../../protocols/election/bully/bully.ts";
import { heartbeat } from "../../protocols/membership/heartbeat.ts";
import { causal } from "../../protocols/multicast/causal.ts";
import { mutexWithWorkload } from "../../protocols/mutex/family/workload.ts";
import { ricartAgrawala } from "../../protocols/mutex/ricart-agrawala/ricart-agrawala.ts";
import { simulation } from "../../sim/simulation.ts";
import type { TraceEntry } from "../../trace/entry.ts";
import { explore } from "../explore.ts";
import type { ModelOptions } from "../model.ts";
import { choices } from "../model-options.ts";
import { walk } from "../search/walks.ts";
import { Replayer } from "./replay.ts";
import { causallyOrdered, shrink } from "./shrink.ts";
import { modelOf, movesOf, shrinkTrace } from "./trace.ts";

/** Bully with unbounded delays, which can end with two leaders. */
const hasty: ModelOptions<Bully> = {
  protocol: bully(),
  nodes: [0, 1, 2],
  network: "fifo",
  timers: "free",
  begin: "down",
  crashes: 1,
  recoveries: 1,
  losses: 1,
};
const safety = bully().properties.filter(({ name }) => name === "E1 safety");
const shortest = explore({ ...hasty, properties: safety }).path.length;

describe("shrinking a run of a search", () => {
  it("ends with a run of the model that violates the same property, at most 50 % longer than the shortest", () => {
    fc.assert(
      fc.property(fc.integer(), fc.constantFrom(...choices.strategy), (seed, strategy) => {
        const found = walk({ ...hasty, strategy, seed, properties: safety });
        const property = found.property ?? safety[0]!;
        const shrunk = shrink(hasty, found.path, property);
        if (shrunk === null) throw new Error("expected the run to be a run of the model");
        expect(shrunk.originalLength).toBe(found.path.length);
        expect(shrunk.length).toBeLessThanOrEqual(1.5 * shortest);
        const replayer = new Replayer(hasty, property);
        expect(replayer.replay(shrunk.path)).toEqual(shrunk.path);
        for (const left of shrunk.path.keys()) {
          const without = replayer.replay(shrunk.path.filter((_, at) => at !== left));
          expect(without === null || without.length >= shrunk.length).toBe(true);
        }
      }),
      { numRuns: 30 },
    );
  });

  it("follows a message with different content, after its causes have been removed", () => {
    const use = { type: "workload" as const, body: { type: "use" as const, entries: 2 } };
    const protocol = mutexWithWorkload(ricartAgrawala);
    const options = { protocol, nodes: [0, 1, 2], network: "fifo", timers: "free", begin: "idle" } as const;
    const inside: StateProperty<Vocabulary> = {
      name: "node 2 is outside",
      claim: "",
      when: "always",
      holds: ({ state }) => (state(2) as { workload: { doing: string } }).workload.doing !== "inside",
    };
    // A different node enters twice first, so the clocks have advanced. Without these entries, every timestamp differs.
    const model = { ...options, asks: () => [use], properties: [inside as never] };
    const found = walk({ ...model, strategy: "random", seed: 2 });
    const shrunk = shrink(model, found.path, inside as never);
    expect(found.path.length).toBeGreaterThan(5);
    expect(shrunk?.path.map(({ move }) => `${move.node} ${move.kind}`)).toEqual([
      "2 command",
      "0 receive",
      "1 receive",
      "2 receive",
      "2 receive",
    ]);
  });

  it("respects its limits, and returns the best run so far", () => {
    const found = walk({ ...hasty, strategy: "random", seed: 3, properties: safety });
    const property = safety[0]!;
    const heard: number[] = [];
    const bounded = shrink({ ...hasty, maxReplays: 10 }, found.path, property);
    expect(bounded?.replays).toBeLessThan(15);
    const stopped = shrink({ ...hasty, mayGoOn: ({ replays }) => heard.push(replays) === 0 }, found.path, property);
    expect(heard).toEqual([64]);
    expect(stopped?.replays).toBeLessThan(70);
  });

  it("rejects a run that violates nothing", () => {
    expect(shrink(hasty, [], safety[0]!)).toBeNull();
  });
});

describe("causal order", () => {
  it("keeps every node's own order and every message after its sending", () => {
    const { path } = walk({ ...hasty, strategy: "random", seed: 4, properties: safety });
    const ordered = causallyOrdered(path);
    const own = (run: typeof path, node: NodeId) => run.filter(({ move }) => move.node === node);
    for (const node of hasty.nodes) expect(own(ordered, node)).toEqual(own(path, node));
    expect(new Replayer({ ...hasty, timers: "free" }, safety[0]!).replay(ordered)?.length).toBe(path.length);
  });
});

interface Story {
  readonly protocol: Protocol<Vocabulary>;
  readonly nodes: number;
  readonly command: (node: NodeId) => object | null;
  readonly link?: { lossRate?: number; duplicateRate?: number; order?: "fifo" | "none" };
}

interface Deed {
  readonly at: number;
  readonly node: NodeId;
  readonly what: "command" | "crash" | "start" | "cut" | "heal";
}

/** Arbitrary runs: commands, crashes, recoveries and cuts at any time. */
const deeds: fc.Arbitrary<Deed[]> = fc.array(
  fc.record({
    at: fc.nat(300),
    node: fc.nat(2),
    what: fc.constantFrom("command" as const, "crash" as const, "start" as const, "cut" as const, "heal" as const),
  }),
  { maxLength: 12 },
);

function simulated({ protocol, nodes, command, link = {} }: Story, seed: number, script: readonly Deed[]) {
  const ids = Array.from({ length: nodes }, (_, i) => i);
  const entries: TraceEntry<Vocabulary>[] = [];
  const trace = (entry: TraceEntry<Vocabulary>): void => void entries.push(entry);
  const sim = simulation<Vocabulary>({ protocol, nodes: ids, seed, delayMs: [1, 60], link, trace });
  for (const node of ids) sim.wake(node);
  for (const { at, node, what } of [...script].sort((a, b) => a.at - b.at)) {
    sim.run(at);
    const isAlive = sim.world.alive.includes(node);
    const asked = command(node);
    if (what === "command" && isAlive && asked !== null) sim.command(node, asked as never);
    if (what === "crash" && isAlive) sim.crash(node);
    if (what === "start" && !isAlive) sim.start(node);
    if (what === "cut") sim.cut(node, (node + 1) % nodes);
    if (what === "heal") sim.mend(node, (node + 1) % nodes);
  }
  sim.run(500);
  const last = canonical(ids.map((node) => (sim.world.alive.includes(node) ? sim.world.state(node) : null)));
  return { entries, ids, last };
}

/** Returns whether a message reached a node that was down when it was sent. In the model such a message is lost. */
function outlivesCrash(entries: readonly TraceEntry<Vocabulary>[]): boolean {
  const down = new Set<NodeId>();
  const toNobody = new Set<string>();
  return entries.some((entry) => {
    if (entry.kind === "crash") down.add(entry.node);
    if (entry.kind === "start") down.delete(entry.node);
    if (entry.kind === "send" && down.has(entry.to)) toNobody.add(entry.id);
    return entry.kind === "receive" && toNobody.has(entry.id);
  });
}

const stories: readonly (readonly [string, Story])[] = [
  ["bully", { protocol: bully(), nodes: 3, command: () => ({ type: "call" }) }],
  ["heartbeats", { protocol: heartbeat(), nodes: 3, command: () => null }],
  ["a causal multicast", { protocol: causal(), nodes: 3, command: () => ({ type: "send", payload: "m" }) }],
  [
    "a causal multicast over links that lose, duplicate and reorder",
    {
      protocol: causal(),
      nodes: 3,
      command: () => ({ type: "send", payload: "m" }),
      link: { lossRate: 0.1, duplicateRate: 0.1, order: "none" },
    },
  ],
  [
    "bully over links that lose and duplicate",
    {
      protocol: bully(),
      nodes: 3,
      command: () => ({ type: "call" }),
      link: { lossRate: 0.1, duplicateRate: 0.1 },
    },
  ],
];

describe("a trace of the simulator as a run of the model", () => {
  it.each(stories)("reaches the state that the simulator reached: %s", (_name, story) => {
    fc.assert(
      fc.property(fc.nat(), deeds, (seed, script) => {
        const { entries, ids, last } = simulated(story, seed, script);
        fc.pre(!outlivesCrash(entries));
        const moves = movesOf(entries);
        const elsewhere: StateProperty<Vocabulary> = {
          name: "elsewhere",
          claim: "the states differ from the final states of the simulation",
          when: "always",
          holds: ({ alive, state }) =>
            canonical(ids.map((node) => (alive.includes(node) ? state(node) : null))) !== last,
        };
        const model = { ...modelOf(entries), protocol: story.protocol, nodes: ids, timers: "free" } as const;
        const replayed = new Replayer(model, elsewhere).replay(moves);
        // Entries after the last arrival change nothing: a loss, or a crash of a stopped node.
        expect(replayed).not.toBeNull();
      }),
      { numRuns: 60 },
    );
  });

  it("a message sent to a node while it was down does not prevent a later loss", () => {
    const message = { type: "coordinator" };
    const said = [
      { kind: "start", node: 0 },
      { kind: "start", node: 1 },
      { kind: "crash", node: 1 },
      { kind: "send", node: 0, id: "gone", to: 1, message },
      { kind: "start", node: 1 },
      { kind: "send", node: 0, id: "dropped", to: 1, message },
      { kind: "lost", node: 0, id: "dropped", to: 1, why: "dropped" },
      { kind: "lost", node: 1, id: "gone", to: 1, why: "crashed" },
      { kind: "send", node: 0, id: "late", to: 1, message },
      { kind: "receive", node: 1, id: "late", from: 0, message },
    ] as unknown as TraceEntry<Vocabulary>[];
    expect(movesOf(said).map(({ move }) => move.kind)).toEqual(["start", "start", "crash", "start", "lose", "receive"]);
  });

  it("is null if the model violates nothing on the way", () => {
    const story = stories[0]?.[1] as Story;
    const { entries, ids } = simulated(story, 1, [{ at: 10, node: 0, what: "command" }]);
    const [never] = story.protocol.properties;
    expect(shrinkTrace({ protocol: story.protocol, nodes: ids }, entries, never!)).toBeNull();
  });
});
