import { describe, expect, it } from "vitest";
import { canonical } from "../../core/plain.ts";
import type { Protocol, StateProperty } from "../../core/protocol.ts";
import { natural } from "../../core/shape.ts";
import { type Bully, bully } from "../../protocols/election/bully/bully.ts";
import { extendedChangRoberts } from "../../protocols/election/chang-roberts/extended-chang-roberts.ts";
import { type MutexWithWorkload, mutexWithWorkload } from "../../protocols/mutex/family/workload.ts";
import { type RicartAgrawala, ricartAgrawala } from "../../protocols/mutex/ricart-agrawala/ricart-agrawala.ts";
import { explore } from "../explore.ts";
import type { ModelOptions } from "../model.ts";
import { choices } from "../model-options.ts";
import { mutexModel, ringModel } from "../reference-models.ts";
import { Replayer } from "../shrink/replay.ts";
import { systemFor } from "../suite.ts";
import { exploreDepthFirst } from "./dfs.ts";
import { type WalkProgress, walk } from "./walks.ts";

/** Bully with unbounded delays, which can end with two leaders. */
const hasty: ModelOptions<Bully> = {
  protocol: bully(),
  nodes: [0, 1, 2],
  network: "bag",
  timers: "free",
  begin: "down",
};

const use = { type: "workload" as const, body: { type: "use" as const, entries: 1 } };
/** A setting where a node that never recovers leaves the others waiting for its reply. */
const bereft: ModelOptions<MutexWithWorkload<RicartAgrawala>> = {
  protocol: mutexWithWorkload(ricartAgrawala),
  nodes: [0, 1, 2],
  network: "fifo",
  timers: "free",
  begin: "idle",
  asks: () => [use],
  crashes: 1,
};
const noStarvation = bereft.protocol.properties.filter(({ name }) => name === "ME2 no starvation");

/** Each node draws a number, sends it and adds the numbers it receives. Messages may be lost or duplicated. */
type Adding = { state: { sum: number }; message: { type: "told"; number: number }; command: { type: "draw" } };
const adding = (property: StateProperty<Adding>): ModelOptions<Adding> => ({
  protocol: {
    name: "adding",
    init: () => ({ sum: 0 }),
    receive: {
      told(state, _from, { number }) {
        state.sum += number;
      },
    },
    command: {
      draw(_state, _command, ctx) {
        ctx.broadcast({ type: "told", number: ctx.choose("number", [1, 10]) });
      },
    },
    shapes: { message: { told: { number: natural } }, command: { draw: {} } },
    source: "none",
    assumes: [],
    properties: [property],
    costs: [],
    view: () => ({ role: "adder" }),
  } satisfies Protocol<Adding>,
  nodes: [0, 1],
  network: "bag",
  timers: "free",
  begin: "idle",
  asks: () => [{ type: "draw" }],
  losses: 1,
  duplications: 1,
  crashes: 1,
});

const sums = (world: { alive: readonly number[]; state(node: number): { sum: number } }): string =>
  canonical(world.alive.map((node) => [node, world.state(node).sum]));

describe.each(choices.strategy)("random search: %s", (strategy) => {
  it("replays a run from its seed and number, regardless of earlier runs", () => {
    const found = walk({ ...hasty, strategy, seed: 5 });
    expect([found.verdict, found.property?.name]).toEqual(["violated", "E1 safety"]);
    const replayed = walk({ ...hasty, strategy, seed: 5, firstRun: found.violatingRun ?? -1, runs: 1 });
    expect(replayed).toMatchObject({ verdict: "violated", runs: 1, violatingRun: found.violatingRun });
    expect(replayed.path).toEqual(found.path);
    const others = [6, 7, 8].map((seed) => canonical(walk({ ...hasty, strategy, seed }).path));
    expect(new Set([canonical(found.path), ...others]).size).toBeGreaterThan(1);
  });

  it("makes exactly the runs whose numbers it is given", () => {
    const { violatingRun } = walk({ ...hasty, strategy, seed: 5 });
    const found = violatingRun ?? -1;
    const before = Array.from({ length: found }, (_, number) => number);
    expect(walk({ ...hasty, strategy, seed: 5, numbers: before })).toMatchObject({ verdict: "unknown", runs: found });
    const numbers = [...before.toReversed(), found, found + 1];
    expect(walk({ ...hasty, strategy, seed: 5, numbers })).toMatchObject({ violatingRun, runs: found + 1 });
  });

  it("ends with a run of the model", () => {
    const { path, property } = walk({ ...hasty, strategy, seed: 5 });
    if (property === null) throw new Error("expected a violation");
    expect(new Replayer(hasty, property).replay(path)).toEqual(path);
  });

  it("eventually reaches every state of the exploration, and no other", () => {
    const visit = (seen: Set<string>): ModelOptions<Adding> =>
      adding({ name: "seen", claim: "", when: "always", holds: (world) => seen.add(sums(world)).size > 0 });
    const [all, some] = [new Set<string>(), new Set<string>()];
    expect(explore(visit(all)).verdict).toBe("holds");
    expect(walk({ ...visit(some), strategy, seed: 1, runs: 4_000 }).verdict).toBe("unknown");
    expect([...some].sort()).toEqual([...all].sort());
  });

  it("detects a run that stops with an open obligation", () => {
    const { verdict, property, loop, path } = walk({ ...bereft, strategy, seed: 1, properties: noStarvation });
    expect([verdict, property?.name, loop]).toEqual(["violated", "ME2 no starvation", path.length]);
    expect(path.map(({ move }) => move.kind)).toContain("crash");
    expect(walk({ ...bereft, crashes: 0, strategy, seed: 1, runs: 300, properties: noStarvation }).verdict).toBe(
      "unknown",
    );
  });

  it("shows a run to a `sometimes` property that came true", () => {
    const twice = { name: "twice", claim: "", when: "sometimes" as const };
    const options = adding({ ...twice, holds: ({ alive, state }) => alive.some((node) => state(node).sum === 20) });
    const { witnesses, verdict } = walk({ ...options, strategy, seed: 1 });
    expect(verdict).toBe("unknown");
    expect(witnesses.map(({ property }) => property.name)).toEqual(["twice"]);
    expect(witnesses[0]?.path.map(({ move }) => move.kind)).toContain("duplicate");
    expect(witnesses[0]?.path.at(-1)?.states).toContainEqual({ sum: 20 });
  });

  it("stops on request, and never claims that a property holds", () => {
    const stopped = walk({
      ...ringModel(5),
      strategy,
      seed: 1,
      mayGoOn: ({ runs }: WalkProgress) => runs < 7,
    } as never);
    expect(stopped).toMatchObject({ verdict: "unknown", runs: 7 });
    const short = walk({ ...ringModel(5), strategy, seed: 1, runs: 3, stepsPerRun: 4 } as never);
    expect(short).toMatchObject({ verdict: "unknown", runs: 3, depth: 4, transitions: 12 });
  });
});

describe("a step with more outcomes than can be enumerated", () => {
  /** Each node draws four numbers below 100. */
  const { protocol } = adding({ name: "small", claim: "", when: "always", holds: () => true });
  const drawing: ModelOptions<Adding> = {
    protocol: {
      ...protocol,
      command: {
        draw(state, _command, ctx) {
          const hundred = Array.from({ length: 100 }, (_, number) => number);
          for (let drawn = 0; drawn < 4; drawn++) state.sum = 100 * state.sum + ctx.choose("number", hundred);
        },
      },
    },
    nodes: [0, 1],
    network: "bag",
    timers: "free",
    begin: "idle",
    asks: () => [{ type: "draw" }],
  };
  const drawn = (firstRun: number, runs: number) => {
    const found: number[] = [];
    const property: StateProperty<Adding> = {
      name: "seen",
      claim: "",
      when: "always",
      holds: ({ alive, state }) => found.push(...alive.map((node) => state(node).sum)) > 0,
    };
    const result = walk({ ...drawing, properties: [property], strategy: "random", seed: 1, firstRun, runs });
    return { found, result };
  };

  it("can still be walked, by drawn outcomes", () => {
    const { found, result } = drawn(0, 30);
    expect(result.transitions).toBe(60);
    expect(result.handlerRuns).toBeLessThan(3_000);
    expect(new Set(found).size).toBeGreaterThan(30);
  });

  it("a run depends only on the seed and on its number, not on earlier runs", () => {
    const [all, alone] = [drawn(0, 8), drawn(7, 1)];
    expect(all.found.slice(-alone.found.length)).toEqual(alone.found);
    expect(drawn(0, 8).found).toEqual(all.found);
  });
});

describe("a random search within bounds", () => {
  it.each(choices.strategy)("takes another move if a bound excludes one: %s", (strategy) => {
    const calls = { ...hasty, begin: "idle", asks: () => [{ type: "call" as const }], maxInFlight: 3 } as const;
    const undecided: StateProperty<Bully> = {
      name: "undecided",
      claim: "some node knows no leader",
      when: "always",
      holds: ({ alive, state }) => alive.some((node) => state(node).leader === null),
    };
    const { path } = walk({ ...calls, strategy, seed: 1, properties: [undecided] });
    let inFlight = 0;
    const crowds = path.map(({ move, sends }) => {
      inFlight += sends.length - (move.kind === "receive" ? 1 : 0);
      return inFlight;
    });
    expect(path.length).toBeGreaterThanOrEqual(3);
    expect(Math.max(...crowds)).toBeLessThanOrEqual(3);
  });

  it.each(["runs", "firstRun", "stepsPerRun", "bugDepth"])("rejects %s that are not a count", (bound) => {
    const options = { ...hasty, strategy: "random" as const, seed: 1, [bound]: -1 };
    expect(() => walk(options)).toThrow(`expected ${bound} of walk() to be a whole number of 0 or more, got -1`);
  });
});

describe("depth-first search", () => {
  it.each([
    ["Chang–Roberts, 8 nodes", ringModel(8)],
    ["Ricart–Agrawala, 3 nodes", mutexModel(3, 1)],
    ["adding", adding({ name: "any", claim: "", when: "always", holds: () => true })],
    [
      "Chang–Roberts with its promises",
      {
        ...hasty,
        protocol: extendedChangRoberts(),
        network: "fifo",
        begin: "idle",
        asks: () => [{ type: "call" }],
      } as const,
    ],
  ])("visits the same states as breadth-first search: %s", (_name, options) => {
    const [{ states, transitions }, deep] = [explore(options as never), exploreDepthFirst(options as never)];
    expect(deep).toMatchObject({ verdict: "holds", states, transitions });
  });

  it("stops when memory is short, like breadth first", () => {
    const options = systemFor({ protocol: "paxos", nodes: [0, 1, 2], initiators: [0, 1], timers: "quiet" });
    expect(exploreDepthFirst({ ...options, maxBytes: 1_000_000 }).verdict).toBe("unknown");
    expect(() => exploreDepthFirst({ ...options, maxBytes: -5 })).toThrow(
      "expected maxBytes of exploreDepthFirst() to be a whole number of 0 or more, got -5",
    );
  });

  it("shows a run of the model, which may be long", () => {
    const { verdict, property, path } = exploreDepthFirst({ ...hasty, maxDepth: 40 });
    expect([verdict, property?.name]).toEqual(["violated", "E1 safety"]);
    if (property === null) return;
    expect(new Replayer(hasty, property).replay(path)).toEqual(path);
    expect(path.length).toBeGreaterThanOrEqual(explore(hasty).path.length);
  });

  it("detects a run that stops with an open obligation", () => {
    const { property, loop, path } = exploreDepthFirst({ ...bereft, properties: noStarvation });
    expect([property?.name, loop]).toEqual(["ME2 no starvation", path.length]);
  });

  it("reaching a bound makes the verdict unknown, never a pass", () => {
    const ring = ringModel(8) as unknown as ModelOptions<Bully>;
    expect(exploreDepthFirst({ ...ring, maxStates: 100 })).toMatchObject({ verdict: "unknown", states: 100 });
    expect(exploreDepthFirst({ ...ring, maxDepth: 10 })).toMatchObject({ verdict: "unknown", depth: 10 });
    expect(exploreDepthFirst({ ...ringModel(10), mayGoOn: () => false }).verdict).toBe("unknown");
  });

  it("a `sometimes` property that comes true has a run, and one that never does is violated", () => {
    const happens = (sum: number): ModelOptions<Adding> => {
      const holds: StateProperty<Adding>["holds"] = ({ alive, state }) => alive.some((node) => state(node).sum === sum);
      return adding({ name: `a sum of ${sum}`, claim: "", when: "sometimes", holds });
    };
    const found = exploreDepthFirst(happens(20));
    expect([found.verdict, found.witnesses.length]).toEqual(["holds", 1]);
    expect(found.witnesses[0]?.path.at(-1)?.states).toContainEqual({ sum: 20 });
    expect(exploreDepthFirst(happens(11))).toMatchObject({ verdict: "violated", witnesses: [] });
  });
});
