import { describe, expect, it } from "vitest";
import type { Duration, Property, Protocol } from "../core/protocol.ts";
import { counterexample } from "./counterexample.ts";
import { type ExploreOptions, explore } from "./explore.ts";
import { exploreDepthFirst } from "./search/dfs.ts";
import { walk } from "./search/walks.ts";
import { shrink } from "./shrink/shrink.ts";

/** Nodes that arm timers when they start, and note what happens to them, in order. */
type Sleepers = {
  state: { log: string[] };
  message: { type: "ping" };
  timer: "early" | "late" | "tick";
  command: { type: "stop" } | { type: "nudge" };
};

interface Plan {
  /** The timers that each node arms when it starts. */
  readonly timers?: readonly Partial<Record<Sleepers["timer"], Duration>>[];
  /** Whether node 0 sends a ping to node 1 when it starts. */
  readonly pings?: boolean;
}

const sleepers = ({ timers = [], pings = false }: Plan): Protocol<Sleepers> => ({
  name: "sleepers",
  init: () => ({ log: [] }),
  start(_state, ctx) {
    for (const [timer, duration] of Object.entries(timers[ctx.self] ?? {}))
      ctx.setTimer(timer as Sleepers["timer"], duration);
    if (pings && ctx.self === 0) ctx.send(1, { type: "ping" });
  },
  receive: { ping: ({ log }) => void log.push("ping") },
  timeout: {
    early: ({ log }) => void log.push("early"),
    late: ({ log }) => void log.push("late"),
    tick: (_state, ctx) => ctx.setTimer("tick", 200),
  },
  command: {
    stop({ log }, _command, ctx) {
      log.push("stop");
      ctx.cancelTimer("early");
    },
    nudge: () => undefined,
  },
  shapes: { message: { ping: {} }, command: { stop: {}, nudge: {} } },
  source: "none",
  assumes: [],
  properties: [],
  costs: [],
  view: () => ({ role: "sleeper" }),
});

type Options = Partial<ExploreOptions<Sleepers>>;

const options = (plan: Plan, more: Options): ExploreOptions<Sleepers> => ({
  protocol: sleepers(plan),
  nodes: [0, 1],
  network: "fifo",
  timers: "timed",
  begin: "together",
  ...more,
  time: { unitMs: 100, delayMs: [100, 100], ...more.time },
});

const logs = (name: string, holds: (...logs: string[][]) => boolean): Property<Sleepers> => ({
  name,
  claim: name,
  when: "always",
  holds: ({ alive, nodes, state }) => holds(...nodes.map((node) => (alive.includes(node) ? state(node).log : []))),
});

const order = (node: number, ...wanted: string[]) =>
  logs(`node ${node}: ${wanted.join(", ")}`, (...all) => (all[node] ?? []).every((what, i) => what === wanted[i]));

const verdict = (plan: Plan, property: Property<Sleepers>, more: Options = {}): string =>
  explore(options(plan, { ...more, properties: [property] })).verdict;

const isFirst = logs("node 0 is first", (a = [], b = []) => b.length === 0 || a.length > 0);

/** Expects that node 0 is always the first whose timer fires, or that node 1 can be. */
function first(how: "always" | "not always", plan: Plan, more: Options = {}): void {
  expect(verdict(plan, isFirst, more)).toBe(how === "always" ? "holds" : "violated");
}

describe("timed exploration: when events happen", () => {
  it("a message arrives within its delays, and not outside them", () => {
    const plan = { pings: true, timers: [{}, { early: 300 }] };
    expect(verdict(plan, order(1, "ping", "early"), { time: { unitMs: 100, delayMs: [0, 200] } })).toBe("holds");
    expect(verdict(plan, order(1, "ping", "early"), { time: { unitMs: 100, delayMs: [0, 300] } })).toBe("violated");
    expect(verdict(plan, order(1, "early", "ping"), { time: { unitMs: 100, delayMs: [400, 500] } })).toBe("holds");
    expect(verdict(plan, order(1, "early", "ping"), { time: { unitMs: 100, delayMs: [300, 500] } })).toBe("violated");
  });

  it("a timer fires after its duration, or within its range", () => {
    first("always", { timers: [{ early: 200 }, { early: 300 }] });
    first("always", { timers: [{ early: [100, 200] }, { early: [300, 900] }] });
    first("not always", { timers: [{ early: [100, 300] }, { early: [300, 900] }] });
  });

  it("durations are rounded outward to whole units", () => {
    first("always", { timers: [{ early: 250 }, { early: 400 }] });
    first("not always", { timers: [{ early: 250 }, { early: 350 }] });
  });

  it("events at the same time happen in any order", () => {
    first("not always", { timers: [{ early: 200 }, { early: 200 }] });
  });

  it("clocks drift by no more than stated: 300 ms end before 400 ms with 0.1, but not with 0.2", () => {
    const plan = { timers: [{ early: 300 }, { early: 400 }] };
    first("always", plan, { time: { unitMs: 10, delayMs: [100, 100], drift: 0.1 } });
    first("not always", plan, { time: { unitMs: 10, delayMs: [100, 100], drift: 0.2 } });
    // If only one of them drifts, 0.2 is not enough.
    first("always", plan, { time: { unitMs: 10, delayMs: [100, 100], drift: { 1: 0.2 } } });
    first("not always", plan, { time: { unitMs: 10, delayMs: [100, 100], drift: { 1: 0.34 } } });
  });

  it("the timers of a node run by the same clock, so they keep their order despite drift", () => {
    const time = { unitMs: 100, delayMs: [100, 100], drift: 0.5 } as const;
    expect(verdict({ timers: [{ early: 200, late: 300 }] }, order(0, "early", "late"), { time })).toBe("holds");
    expect(verdict({ timers: [{ early: 200 }, { late: 300 }] }, order(0, "early"), { time })).toBe("holds");
    first("not always", { timers: [{ early: 200 }, { late: 300 }] }, { time });
  });

  it("a timer that fires late shows that the clock is slow, which delays the next timer only by its difference", () => {
    // After `early`, 100 ms of node 0's clock remain, which last at most 200 ms.
    const plan = { timers: [{ early: 600, late: 700 }, { early: 100 }] };
    const found = explore(
      options(plan, { time: { unitMs: 100, delayMs: [100, 100], drift: { 0: 0.5 } }, properties: [order(0, "early")] }),
    );
    const times = counterexample({ ...options(plan, {}) }, found).entries.filter(({ kind }) => kind === "timeout");
    const [early = 0, late = 0] = times.filter(({ node }) => node === 0).map(({ at }) => at);
    expect(late - early).toBeLessThanOrEqual(200);
  });

  it("a canceled timer never fires", () => {
    const asks = (node: number) => (node === 0 ? [{ type: "stop" } as const] : []);
    const fires = (when: "before" | "after") =>
      logs(`no timeout ${when} the command`, (log = []) => log.length < 2 || log[when === "before" ? 1 : 0] !== "stop");
    expect(verdict({ timers: [{ early: 200 }] }, fires("before"), { asks })).toBe("violated");
    expect(verdict({ timers: [{ early: 200 }] }, fires("after"), { asks })).toBe("holds");
  });

  it("a crash loses timers and messages, and a recovery arms timers again", () => {
    const plan = { timers: [{ early: 200 }, { early: 300 }] };
    first("always", plan);
    first("not always", plan, { crashes: 1 });
    first("not always", plan, { crashes: 1, recoveries: 1 });
  });

  it("a paused node takes no steps for up to its bound, then catches up", () => {
    const plan = { timers: [{ early: 200 }, { early: 400 }] };
    const paused = (pauseMs: number): Options => ({ pauses: 1, time: { unitMs: 100, delayMs: [100, 100], pauseMs } });
    first("always", plan, paused(100));
    first("not always", plan, paused(200));
  });
});

describe("timed exploration: the search", () => {
  it("is finite: states that differ only in when they occur are equal", () => {
    const found = explore(options({ timers: [{ tick: 200 }, { tick: 300 }] }, { properties: [] }));
    expect([found.verdict, found.states]).toEqual(["holds", 5]);
  });

  it("time passes in every infinite run, so commands do not keep a timer from firing", () => {
    const ends: Property<Sleepers> = {
      name: "ends",
      claim: "node 0 ends",
      when: "eventually",
      holds: ({ alive, state }) => alive.includes(0) && state(0).log.length > 0,
    };
    const commands = (): Sleepers["command"][] => [{ type: "nudge" }];
    const found = explore(options({ timers: [{ early: 200 }] }, { commands, properties: [ends] }));
    expect(found.verdict).toBe("holds");
    expect(explore(options({}, { commands, properties: [ends] })).verdict).toBe("violated");
  });

  const racing = options(
    { timers: [{ early: 200 }, { early: 200 }] },
    {
      properties: [isFirst],
    },
  );

  it("moves contain the time that passes before them, and traces contain the time of each entry", () => {
    const { path, property, loop } = explore(racing);
    expect(path.map(({ move }) => [move.kind, move.node, move.afterMs])).toEqual([
      ["start", 0, undefined],
      ["start", 1, undefined],
      ["timeout", 1, 200],
    ]);
    const { entries } = counterexample(racing, { path, property, loop });
    expect(entries.filter(({ kind }) => kind === "timeout").map(({ at }) => at)).toEqual([200]);
  });

  it("depth-first search, random runs and shrinking use the same model", () => {
    expect(exploreDepthFirst(racing).verdict).toBe("violated");
    const { path, property } = walk({ ...racing, strategy: "random", seed: 1, runs: 100 });
    const { mayGoOn: _mayGoOn, ...model } = racing;
    const shrunk = property === null ? null : shrink(model, path, property);
    expect(shrunk?.path.map(({ move }) => move.kind)).toEqual(["start", "start", "timeout"]);
  });

  it.each<[Options, string]>([
    [{ timers: "timed" }, "expected time of explore() to be the bounds on time"],
    [
      { timers: "free", time: { unitMs: 1, delayMs: [0, 1] } },
      'expected time of explore() to be absent unless timers is "timed"',
    ],
    [{ timers: "free", pauses: 1 }, 'expected pauses of explore() to be 0 unless timers is "timed"'],
    [
      { timers: "timed", time: { unitMs: 0, delayMs: [0, 1] } },
      "expected time.unitMs of explore() to be a finite number above 0",
    ],
    [
      { timers: "timed", time: { unitMs: 1, delayMs: [2, 1] } },
      "expected time.delayMs of explore() to be a minimum and a maximum",
    ],
    [
      { timers: "timed", time: { unitMs: 1, delayMs: [0, 1], drift: 1 } },
      "expected time.drift of explore() to be a number from 0",
    ],
    [
      { timers: "timed", time: { unitMs: 1, delayMs: [0, 1] }, delays: 1 },
      'expected delays of explore() to be absent if timers is "timed"',
    ],
  ])("rejects the options %j", (more, sentence) => {
    const { time: _time, ...plain } = options({}, {});
    expect(() => explore({ ...plain, properties: [], ...more })).toThrow(sentence);
  });
});
