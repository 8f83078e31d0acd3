/**
 * Checks the rules for handlers: they depend only on their arguments, keep only plain data, do not throw, and
 * terminate.
 */
import { describe, expect, it } from "vitest";
import { counterexample, explore, exploreDepthFirst, shrink, walk } from "../../src/check/index.ts";
import { type Context, InvariantViolation, natural, type Protocol, UsageError } from "../../src/core/index.ts";
import { simulation } from "../../src/sim/index.ts";

type Counting = {
  state: { sum: number; more?: unknown };
  message: { type: "add"; by: number };
  timer: "bell";
  command: { type: "begin" };
  event: { type: "added"; sum: number };
};
type Add = (state: Counting["state"], by: number, ctx: Context<Counting>) => void;

const counting = (add: Add, begin: Add = (_state, _by, ctx) => ctx.broadcast({ type: "add", by: 1 })) =>
  ({
    name: "counting",
    init: () => ({ sum: 0 }),
    receive: { add: (state, _from, { by }, ctx) => add(state, by, ctx) },
    timeout: { bell() {} },
    command: { begin: (state, _command, ctx) => begin(state, 0, ctx) },
    shapes: { message: { add: { by: natural } }, command: { begin: {} } },
    source: "none",
    assumes: [],
    properties: [{ name: "counted", claim: "sums are numbers", when: "always", holds: () => true }],
    costs: [],
    view: ({ sum }) => ({ role: `at ${sum}` }),
  }) satisfies Protocol<Counting> as Protocol<Counting>;

const nodes = [0, 1, 2];
const model = (protocol: Protocol<Counting>) =>
  ({
    protocol,
    nodes,
    network: "fifo",
    timers: "never",
    begin: "idle",
    asks: () => [{ type: "begin" as const }],
  }) as const;

const searches = {
  explore: (protocol: Protocol<Counting>) => explore(model(protocol)),
  exploreDepthFirst: (protocol: Protocol<Counting>) => exploreDepthFirst(model(protocol)),
  walk: (protocol: Protocol<Counting>) => walk({ ...model(protocol), strategy: "random", seed: 1, runs: 20 }),
};

function simulate(protocol: Protocol<Counting>): void {
  const sim = simulation({ protocol, nodes, seed: 7, delayMs: [1, 10] });
  for (const node of nodes) sim.wake(node);
  for (const node of nodes) {
    sim.command(node, { type: "begin" });
    sim.run();
  }
}
const drivers = { ...searches, simulation: simulate };

function thrownBy(run: () => unknown): Error {
  try {
    run();
  } catch (error) {
    return error as Error;
  }
  throw new Error("nothing was thrown");
}

/** Each driver gets a new instance with its own variables. */
const dependent: Readonly<Record<string, () => Protocol<Counting>>> = {
  "on Math.random()": () =>
    counting((state) => {
      state.sum += Math.random() < 0.5 ? 1 : 2;
    }),
  "on a clock": () =>
    counting((state) => {
      state.sum += performance.now();
    }),
  "on a variable that it changes": () => {
    let calls = 0;
    return counting((state) => {
      calls += 1;
      state.sum = calls;
    });
  },
  "on a variable that another handler changes": () => {
    let last = 0;
    return counting(
      (state) => {
        state.sum = last;
      },
      (_state, _by, ctx) => {
        last = ctx.self + 1;
        ctx.broadcast({ type: "add", by: 1 });
      },
    );
  },
};

describe.each(Object.entries(dependent))("a handler whose result depends %s", (_what, made) => {
  it.each(Object.entries(drivers))("is detected by %s, and named", (_driver, run) => {
    const error = thrownBy(() => run(made()));
    expect(error).toBeInstanceOf(InvariantViolation);
    expect(error).toMatchObject({ code: "not-repeatable" });
    expect(error.message).toMatch(
      /a handler of counting .* in state\.sum \(node \d, receive add \{.*"by":1\} from \d\)/,
    );
    expect(error.message).toContain("use ctx.choose for randomness");
  });
});

it("an effect that depends on Math.random() is named", () => {
  const error = thrownBy(() =>
    explore(model(counting((_state, _by, ctx) => ctx.emit({ type: "added", sum: Math.random() })))),
  );
  expect(error.message).toContain("in effects[0].event.sum (node ");
});

describe("a state that changes after its handler has returned is detected by", () => {
  it.each(Object.entries(searches))("%s", (_driver, run) => {
    const kept: Counting["state"][] = [];
    const leaking = counting((state, by) => {
      state.sum += by;
      if (kept.length < 4) kept.push(state);
      for (const other of kept) if (other !== state) other.more = 1;
    });
    const error = thrownBy(() => run(leaking));
    expect(error).toBeInstanceOf(InvariantViolation);
    expect((error as InvariantViolation).code).toMatch(/not-repeatable|state-changed/);
  });
});

class Sum {
  readonly value = 1;
}
const stranger: [what: string, value: () => unknown, path: string, instead: string][] = [
  ["Map", () => new Map(), "state.more", "use an object by key"],
  ["Set", () => [new Set()], "state.more[0]", "use a list"],
  ["Sum", () => ({ inner: new Sum() }), "state.more.inner", "use an object literal"],
  ["a function", () => () => 1, "state.more", "use data, and keep functions outside"],
];

describe.each(stranger)("%s in a state", (what, value, path, instead) => {
  it.each(Object.entries(drivers))("is rejected by %s, after a handler and after init", (_driver, run) => {
    const strange: Add = (state) => {
      state.more = value();
    };
    const after = thrownBy(() => run(counting(strange)));
    expect(after).toBeInstanceOf(UsageError);
    expect(after).toMatchObject({ code: "not-plain" });
    expect(after.message).toMatch(/the state of node \d to be plain data/);
    expect(after.message).toContain(`got ${what} at ${path} after receive add: ${instead}`);
    const atOnce = thrownBy(() => run({ ...counting(() => {}), init: () => ({ sum: 0, more: value() }) }));
    expect(atOnce.message).toContain(`got ${what} at ${path} after init: ${instead}`);
  });
});

const failing: [what: string, add: Add, said: string][] = [
  ["throws", (state) => (state.more as { size(): void }).size(), "TypeError: Cannot read properties of undefined"],
  [
    "recurs without end",
    function endless(state, by, ctx) {
      endless(state, by, ctx);
    },
    "RangeError: Maximum call stack size exceeded",
  ],
  [
    "changes its list of peers",
    (_state, by, ctx) => void (ctx.peers as number[]).push(by),
    "TypeError: Cannot add property 2, object is not extensible",
  ],
  [
    "sends without end",
    (_state, _by, ctx) => {
      for (;;) ctx.setTimer("bell", 1);
    },
    "expected at most 100000 effects in one step",
  ],
];

describe.each(failing)("a handler that %s", (_what, add, said) => {
  it.each(Object.entries(searches))("is a counterexample of %s", (_driver, run) => {
    const { verdict, property, path, failure } = run(counting(add));
    expect(verdict).toBe("violated");
    expect(property).toMatchObject({ name: "no handler throws" });
    expect(property?.claim).toMatch(/^no handler throws, but “receive add” of node \d threw/);
    expect(property?.claim).toContain(said);
    expect(failure).toMatchObject({ node: path.at(-1)?.move.node, handler: "receive add" });
    expect(path.at(-1)?.move).toMatchObject({ kind: "receive", message: { type: "add", by: 1 } });
    const { entries, violation } = counterexample(model(counting(add)), { property, path, loop: null });
    expect(violation?.property).toBe("no handler throws");
    expect(entries.findLast(({ kind }) => kind !== "view")).toMatchObject({ kind: "receive", message: { by: 1 } });
  });

  it("is an error of the simulator that names node, handler, message, time and seed", () => {
    const error = thrownBy(() => simulate(counting(add)));
    expect(error).toBeInstanceOf(InvariantViolation);
    expect(error.message).toContain(said);
    expect(error.message).toMatch(/\(node \d, receive add \{.*"by":1\} from \d, at [\d.]+ ms, seed 7\)$/);
  });
});

it("the run to a handler that throws is a shortest one, and shrinking finds one as short", () => {
  const add: Add = (state, by) => {
    state.sum += by;
    if (state.sum === 2) throw new TypeError("two");
  };
  const shortest = explore(model(counting(add)));
  expect(shortest.path.map(({ move }) => move.kind)).toEqual(["command", "command", "receive", "receive"]);
  const found = walk({ ...model(counting(add)), strategy: "random", seed: 3 });
  const small = shrink(model(counting(add)), found.path, found.property as NonNullable<typeof found.property>);
  expect(small?.path).toHaveLength(4);
});

it("an error that a listener throws while a handler runs is rethrown unchanged", () => {
  const own = new Error("mine");
  const protocol = counting((state, by, ctx) => ctx.emit({ type: "added", sum: state.sum + by }));
  const onEvent = (): void => {
    throw own;
  };
  const sim = simulation({ protocol, nodes: [0, 1], seed: 1, delayMs: 1, onEvent });
  for (const node of [0, 1]) sim.wake(node);
  sim.command(0, { type: "begin" });
  expect(thrownBy(() => sim.run())).toBe(own);
});

it("shrink() without a path or a property names the expected options", () => {
  const options = model(counting(() => {}));
  expect(() => shrink(options, null as never, null as never)).toThrow("expected path of shrink() to be the path of");
  expect(() => shrink(options, [], null as never)).toThrow("expected property of shrink() to be the property that");
  expect(() => shrink(options, [], "counted" as never)).toThrow(
    "expected property of shrink() to be the property that",
  );
});
