import { describe, expect, it } from "vitest";
import { type PrimaryLog, primaryLog } from "../../../../test/protocols/logs/primary-log.ts";
import { explore } from "../../../check/explore.ts";
import type { Context, Protocol } from "../../../core/protocol.ts";
import { simulation } from "../../../sim/index.ts";
import { type ReplicatedSystemOptions, replicated } from "./systems.ts";

type Ctx = Context<PrimaryLog>;

const NODES = [0, 1, 2];
const execute = (request: number, operation: string) =>
  ({ type: "client", body: { type: "execute", request, operation } }) as const;
const use = (commands: number) => ({ type: "client", body: { type: "use", commands } }) as const;

function stage(options: ReplicatedSystemOptions<object> = {}, log = () => primaryLog()) {
  const sim = simulation({ protocol: replicated(log, options), nodes: NODES, delayMs: 10, seed: 1 });
  for (const node of NODES) sim.wake(node);
  return sim;
}

const results = (sim: ReturnType<typeof stage>, node: number): unknown[] =>
  sim.replies(node).map(({ reply }) => reply.body);

describe("the state machine", () => {
  it.each([
    ["log", ["append a", "append b", "read"], ["1", "2", "a,b"]],
    ["map", ["put x 1", "cas x 1 2", "cas x 1 3", "get x", "delete x", "get x"], ["", "yes", "no", "2", "2", ""]],
    ["map", ["put __proto__ 1", "get __proto__", "get toString"], ["", "1", ""]],
    ["counter", ["add 3", "add -1", "get", "add many"], ["3", "2", "2", "2"]],
    ["counter", ["shrink"], ["unknown operation"]],
  ] as const)("%s: %j is answered by %j", (kind, operations, expected) => {
    const sim = stage({ machine: { kind } });
    for (const [at, operation] of operations.entries()) sim.command(2, execute(at, operation));
    sim.run();
    expect(results(sim, 2)).toEqual(expected.map((result) => ({ type: "result", result })));
  });

  it("brings a disconnected node up to date with a snapshot", () => {
    const sim = stage({ machine: { kind: "counter", snapshotEvery: 2 } });
    sim.crash(2);
    sim.command(1, use(5));
    sim.run();
    sim.start(2);
    sim.run();
    expect(sim.world.state(0).log).toMatchObject({ index: 4, entries: [{ client: 1, sequence: 5 }] });
    expect(sim.world.state(2).machine).toEqual({ ...sim.world.state(1).machine, unsaved: 1 });
    expect(sim.verdict()).toEqual([]);
  });
});

describe("the client", () => {
  it("proposes again until its command has been applied, which happens once", () => {
    const sim = stage({ machine: { kind: "counter" }, client: { retryMs: 50 } });
    sim.cut(0, 1); // The command arrives, but the answers do not.
    sim.command(1, execute(1, "add 1"));
    sim.run(500);
    expect(sim.messages.byType.forward).toBeGreaterThan(4);
    expect(results(sim, 1)).toEqual([]);
    sim.mend(0, 1);
    sim.crash(1);
    sim.start(1);
    sim.run();
    expect(sim.world.state(1).machine).toMatchObject({
      data: { sum: 1 },
      sessions: { 1: { sequence: 1, result: "1" } },
    });
    expect(sim.world.state(0).machine.index).toBeGreaterThan(4);
    expect(sim.verdict()).toEqual([]);
  });

  it("repeats a request from before a crash", () => {
    const sim = stage({ machine: { kind: "counter" } });
    sim.cut(2, 0);
    sim.command(2, use(1));
    sim.crash(2);
    sim.heal();
    sim.start(2);
    sim.run();
    expect(sim.world.state(0).machine.data).toEqual({ sum: 1 });
    expect(sim.world.state(2).client).toMatchObject({ life: 1, sequence: 1, underWay: null });
  });

  it("rejects a request when ten thousand are waiting", () => {
    const sim = stage();
    for (let request = 1; request <= 10_002; request++) sim.command(2, execute(request, "append x"));
    expect(results(sim, 2)).toEqual([
      { type: "refused", reason: "expected at most 10000 waiting requests; retry later" },
    ]);
  });
});

describe("the properties", () => {
  /** Checks safety only: no command is proposed again, so a command lost in a crash stays lost. */
  function explored(forgets: boolean) {
    const protocol = replicated(() => primaryLog({ forgets }), { client: { retryMs: 0 } });
    return explore({
      protocol,
      properties: protocol.properties.filter(({ when }) => when === "always"),
      nodes: [0, 1],
      network: "fifo",
      timers: "never",
      begin: "idle",
      asks: () => [use(1)],
      crashes: 1,
      recoveries: 1,
    });
  }

  it("hold for a log that keeps its order, and are violated by one that forgets it", () => {
    expect(explored(false)).toMatchObject({ verdict: "holds" });
    expect(explored(true)).toMatchObject({ verdict: "violated", property: { name: "agreement" } });
  });

  /**
   * A log that orders the commands of the two clients differently at each node, at positions chosen by `firstPlace`.
   */
  function orderedByNode(firstPlace: (node: number) => number): Protocol<PrimaryLog> {
    const isKnown = ({ entries }: PrimaryLog["state"], { client }: { client: number }): boolean =>
      entries.some((entry) => entry.client === client);
    const learn = (state: PrimaryLog["state"], entry: PrimaryLog["state"]["entries"][number], ctx: Ctx): void => {
      if (isKnown(state, entry)) return;
      state.entries.push(entry);
      if (state.entries.length < 2) return;
      const ascending = state.entries.toSorted((a, b) => a.client - b.client);
      const order = ctx.self === 0 ? ascending : ascending.toReversed();
      for (const [at, command] of order.entries())
        ctx.emit({ type: "decided", index: firstPlace(ctx.self) + at, command });
    };
    const whole = primaryLog();
    return {
      ...whole,
      start: () => {},
      receive: { ...whole.receive, forward: (state, _from, { command }, ctx) => learn(state, command, ctx) },
      command: {
        ...whole.command,
        propose(state, { command }, ctx) {
          ctx.broadcast({ type: "forward", command });
          learn(state, command, ctx);
        },
      },
    };
  }

  it.each([
    ["places that no two nodes share", (node: number) => 1 + 2 * node],
    ["places with one in common", (node: number) => 1 + node],
    ["the same places", () => 1],
  ])("two nodes that apply the same commands in different orders, at %s, violate agreement", (_where, firstPlace) => {
    const protocol = replicated(() => orderedByNode(firstPlace), { client: { retryMs: 100_000 } });
    const sim = simulation({ protocol, nodes: [0, 1], seed: 1, delayMs: 10 });
    for (const node of [0, 1]) sim.start(node);
    for (const node of [0, 1]) sim.command(node, use(1));
    sim.run(5_000);
    expect([0, 1].map((node) => sim.world.state(node).machine.data)).toEqual([
      { entries: ["0.1", "1.1"] },
      { entries: ["1.1", "0.1"] },
    ]);
    expect(sim.verdict().map(({ property }) => property)).toEqual(["agreement"]);
  });
});
