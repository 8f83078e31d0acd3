import { describe, expect, it } from "vitest";
import type { Protocol } from "../core/protocol.ts";
import { type ExploreOptions, explore } from "./explore.ts";

/** Nodes that count the messages they receive, and send `hello` when they start, on command, or on a timeout. */
type Greeters = {
  state: { heard: number; mourned: number[] };
  message: { type: "hello" };
  timer: "patience";
  command: { type: "greet" } | { type: "mourn"; node: number };
  record: { type: "started" };
};
const greeters: Protocol<Greeters> = {
  name: "greeters",
  init: () => ({ heard: 0, mourned: [] }),
  start(_state, ctx) {
    ctx.persist({ type: "started" });
    ctx.broadcast({ type: "hello" });
  },
  receive: {
    hello(state) {
      state.heard += 1;
    },
  },
  timeout: { patience: (_state, ctx) => ctx.broadcast({ type: "hello" }) },
  command: {
    greet(_state, _command, ctx) {
      ctx.broadcast({ type: "hello" });
      ctx.setTimer("patience", 1);
    },
    mourn(state, { node }) {
      state.mourned.push(node);
    },
  },
  replay: {
    started(state) {
      state.heard = 10;
    },
  },
  shapes: { message: { hello: {} }, command: {}, record: {} } as never,
  source: "none",
  assumes: [],
  properties: [],
  costs: [],
  view: () => ({ role: "greeter" }),
};

const silent: Protocol<Greeters> = { ...greeters, start: () => undefined };

/** Explores with a property that always holds and records every state. */
function seen(options: Partial<ExploreOptions<Greeters>>) {
  const states = new Set<string>();
  const exploration = explore<Greeters>({
    protocol: greeters,
    nodes: [0, 1],
    network: "fifo",
    timers: "free",
    begin: "idle",
    ...options,
    properties: [
      {
        name: "seen",
        claim: "is looked at",
        when: "always",
        holds({ alive, state }) {
          states.add(alive.map((node) => `${node}: ${state(node).heard} ${state(node).mourned.join()}`).join("; "));
          return true;
        },
      },
    ],
  });
  return { ...exploration, seen: [...states].map((each) => each.trim()) };
}

describe("how a run begins", () => {
  it("together: in order and before everything else; messages to nodes that have not started wait", () => {
    expect(seen({ begin: "together" }).seen).toEqual([
      "",
      "0: 0",
      "0: 0 ; 1: 0",
      "0: 1 ; 1: 0",
      "0: 0 ; 1: 1",
      "0: 1 ; 1: 1",
    ]);
  });

  it("down: in any order; messages to stopped nodes are lost", () => {
    expect(seen({ begin: "down" }).seen).toContain("1: 0");
    expect(seen({ begin: "down" }).seen).not.toContain("0: 1 ; 1: 1");
  });
});

describe("commands for nodes", () => {
  const twice: Partial<ExploreOptions<Greeters>> = {
    protocol: silent,
    asks: (node) => (node === 0 ? [{ type: "greet" }, { type: "greet" }] : []),
  };

  it("each command once, in order, at any time", () => {
    const { seen: all, verdict } = seen({ ...twice, timers: "quiet", maxTimeouts: 0 });
    expect(all.at(-1)).toBe("0: 0 ; 1: 2");
    expect(verdict).toBe("unknown"); // The bound of 0 timeouts cut off the timer.
  });

  it("a crash does not undo a command", () => {
    const { seen: all } = seen({
      ...twice,
      protocol: { ...silent, timeout: { patience: () => undefined } },
      crashes: 1,
      recoveries: 1,
    });
    expect(all.filter((state) => /1: [3-9]/.test(state))).toEqual([]);
    expect(all).toContain("0: 0 ; 1: 2");
  });
});

describe("crash notifications", () => {
  const crashNotification = (node: number) => ({ type: "mourn" as const, node });

  it("every running node is notified of every crash, once, and of nothing else", () => {
    const { seen: all } = seen({ protocol: silent, nodes: [0, 1, 2], crashes: 1, crashNotification });
    expect(all).toContain("0: 0 2; 1: 0 2");
    expect(all.every((state) => !/2: 0 2|0: 0 0|1: 0 1/.test(state) && !/,/.test(state))).toBe(true);
    expect(all.filter((state) => state.includes("2: 0") && /0: 0 2/.test(state))).toEqual([]);
  });

  it("is withdrawn when the node recovers", () => {
    const { seen: all } = seen({
      protocol: { ...silent, replay: { started: () => undefined } },
      crashes: 1,
      recoveries: 1,
      crashNotification,
    });
    // Node 0 may have been notified before node 1 recovered. Otherwise it is never notified.
    expect(all).toContain("0: 0 1; 1: 0");
    expect(seen({ protocol: silent, crashes: 1, crashNotification }).states).toBe(5);
  });

  it("counts as in flight: before it, no timer fires and the system is not quiescent", () => {
    const protocol: Protocol<Greeters> = { ...silent, start: (_state, ctx) => ctx.setTimer("patience", 1) };
    const { path } = explore<Greeters>({
      protocol,
      nodes: [0, 1, 2],
      network: "fifo",
      timers: "quiet",
      begin: "together",
      crashes: 1,
      crashNotification,
      properties: [
        {
          name: "mourned",
          claim: "when quiescent, every stopped node is mourned",
          when: "quiescent",
          holds: ({ alive, state }) => alive.length === 3 || alive.every((node) => state(node).mourned.length === 1),
        },
      ],
    });
    expect(path).toEqual([]);
  });
});

describe("faults", () => {
  const one = {
    protocol: silent,
    asks: (node: number) => (node === 0 ? [{ type: "greet" as const }] : []),
    timers: "quiet",
    maxTimeouts: 0,
  } as const;

  it("a duplicated message is delivered and stays in flight, as often as the budget allows", () => {
    const most = (duplications: number) => seen({ ...one, duplications }).seen.at(-1);
    expect([0, 1, 2].map(most)).toEqual(["0: 0 ; 1: 1", "0: 0 ; 1: 2", "0: 0 ; 1: 3"]);
  });

  it("`faults` limits all of them together", () => {
    const sizes = [0, 1, 2, 3, 4].map((faults) => seen({ ...one, losses: 2, duplications: 2, faults }).states);
    expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
    expect(sizes[0]).toBe(seen(one).states);
    expect(sizes[1]).toBeLessThan(seen({ ...one, losses: 1, duplications: 1 }).states);
  });

  it("a journal is replayed, or lost", () => {
    const back = { begin: "together", crashes: 1, recoveries: 1 } as const;
    const recovered = (state: string) => /1\d/.test(state);
    expect(seen(back).seen.some(recovered)).toBe(true);
    expect(seen({ ...back, journal: "lost" }).seen.some(recovered)).toBe(false);
  });

  it("without recoveries journals are not read and do not distinguish states", () => {
    const writing: Protocol<Greeters> = {
      ...silent,
      receive: { hello: (_state, _from, _message, ctx) => ctx.persist({ type: "started" }) },
    };
    expect(seen({ ...one, protocol: writing, crashes: 1 }).states).toBe(
      seen({ ...one, protocol: { ...silent, receive: { hello: () => undefined } }, crashes: 1 }).states,
    );
  });

  it.each([
    [{ crashes: -1 }, "expected crashes of explore() to be a whole number of 0 or more, got -1"],
    [{ maxDepth: Number.NaN }, "expected maxDepth of explore() to be a whole number of 0 or more, got NaN"],
  ])("rejects %j", (options, sentence) => {
    expect(() => seen(options)).toThrow(sentence);
  });
});

describe("bounds", () => {
  it.each([{ maxInFlight: 1 }, { maxTimeouts: 1 }, { maxDepth: 3 }, { maxStates: 3 }])(
    "if %j cuts something off, the verdict is unknown",
    (bound) => {
      const asks = () => [{ type: "greet" as const }];
      const whole = seen({ protocol: silent, asks });
      const { verdict, states } = seen({ protocol: silent, asks, ...bound });
      expect([whole.verdict, verdict]).toEqual(["holds", "unknown"]);
      expect(states).toBeLessThan(whole.states);
    },
  );

  it("a bound that cuts nothing off does not make the verdict unknown", () => {
    const asks = () => [{ type: "greet" as const }];
    const { states, depth } = seen({ protocol: silent, asks });
    const bounds = { maxInFlight: 4, maxTimeouts: 2, maxDepth: depth, maxStates: 100 * states };
    expect(seen({ protocol: silent, asks, ...bounds }).verdict).toBe("holds");
  });
});

describe("an error in a handler is a counterexample that names the expected value", () => {
  type Act = (ctx: Parameters<NonNullable<Protocol<Greeters>["start"]>>[1]) => void;

  it.each<[string, Act, string]>([
    [
      "a choice among nothing",
      (ctx) => ctx.choose("colour", []),
      "expected the options of “colour” to be a non-empty list, got []",
    ],
    [
      "a message to a stranger",
      (ctx) => ctx.send(7, { type: "hello" }),
      "expected the receiver of a message to be one of 0, 1, got 7",
    ],
  ])("%s", (_what, act, sentence) => {
    const { verdict, property } = seen({
      protocol: { ...greeters, start: (_state, ctx) => act(ctx) },
      begin: "down",
    });
    expect(verdict).toBe("violated");
    expect(property?.claim).toContain(sentence);
  });
});

describe("rejects contradictory options", () => {
  it.each<[string, () => unknown, string]>([
    [
      "an unknown network",
      () => seen({ network: "tcp" as never }),
      'expected network of explore() to be one of fifo, inbox, bag, got "tcp"',
    ],
    [
      "an unknown begin",
      () => seen({ begin: undefined as never }),
      "expected begin of explore() to be one of idle, down, together, got undefined",
    ],
    [
      "a node twice",
      () => seen({ nodes: [1, 1] }),
      "expected nodes of explore() to be one or more different whole numbers of 0 or more, got [1,1]",
    ],
  ])("%s", (_what, run, sentence) => {
    expect(run).toThrow(sentence);
  });
});
