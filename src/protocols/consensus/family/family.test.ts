import { describe, expect, it } from "vitest";
import { primaryLog } from "../../../../test/protocols/logs/primary-log.ts";
import { explore } from "../../../check/explore.ts";
import { simulation } from "../../../sim/index.ts";
import { type ReplicatedSystemOptions, replicated } from "./systems.ts";

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

  it("brings who was away up to date by a snapshot", () => {
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
    sim.cut(0, 1); // The command arrives, the answers do not.
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

  it("asks for what it was asked for before a crash", () => {
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

  it("refuses what would wait behind ten thousand requests", () => {
    const sim = stage();
    for (let request = 1; request <= 10_002; request++) sim.command(2, execute(request, "append x"));
    expect(results(sim, 2)).toEqual([{ type: "refused", reason: "10000 requests wait already" }]);
  });
});

describe("the properties", () => {
  /** Safety alone: nothing is proposed again, so what a crash takes with it stays away. */
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

  it("hold of a log that keeps its order, and are violated by one that forgets it", () => {
    expect(explored(false)).toMatchObject({ verdict: "holds" });
    expect(explored(true)).toMatchObject({ verdict: "violated", property: { name: "agreement" } });
  });
});
