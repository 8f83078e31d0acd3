import { describe, expect, it } from "vitest";
import { protocolNames } from "../protocols/index.ts";
import { explore } from "./explore.ts";
import { type SystemSpec, systemFor } from "./suite.ts";

const checked = (spec: SystemSpec) => explore(systemFor(spec));

describe("systems from specifications", () => {
  it.each(protocolNames)("%s can be explored with the defaults", (protocol) => {
    const exploration = checked({ protocol, nodes: [0, 1], maxStates: 2_000 });
    expect(exploration.states).toBeGreaterThan(1);
    expect(["holds", "violated", "unknown"]).toContain(exploration.verdict);
  });

  it("specifications are plain data: after a round trip through JSON they give the same system", () => {
    const spec: SystemSpec = { protocol: "bully", nodes: [0, 1, 2], timers: "quiet", initiators: [], crashes: 1 };
    const counts = ({ states, transitions }: { states: number; transitions: number }) => [states, transitions];
    expect(counts(checked(JSON.parse(JSON.stringify(spec)) as SystemSpec))).toEqual(counts(checked(spec)));
  });

  it("gives a command to all nodes or to the named ones, once or as often as requested", () => {
    const { asks } = systemFor({ protocol: "ricart-agrawala", nodes: [0, 1, 2], initiators: [0, 2], times: 3 });
    expect([0, 1, 2].map((node) => asks?.(node))).toEqual([
      [{ type: "workload", body: { type: "use", entries: 3 } }],
      [],
      [{ type: "workload", body: { type: "use", entries: 3 } }],
    ]);
    expect(systemFor({ protocol: "chang-roberts", nodes: [0, 1] }).asks?.(1)).toEqual([{ type: "call" }]);
    expect(systemFor({ protocol: "heartbeat", nodes: [0, 1] }).asks?.(1)).toEqual([]);
    // Starting the protocol already calls an election.
    expect(systemFor({ protocol: "bully", nodes: [0, 1] }).asks?.(1)).toEqual([]);
    expect(systemFor({ protocol: "bully", nodes: [0, 1], begin: "idle" }).asks?.(1)).toEqual([{ type: "call" }]);
  });

  it("nodes that work from the start begin at any time if timing is unbounded; protocols that need a start get one", () => {
    const begin = (protocol: string, timers: "free" | "quiet") => systemFor({ protocol, nodes: [0, 1], timers }).begin;
    expect([begin("bully", "quiet"), begin("bully", "free")]).toEqual(["idle", "down"]);
    expect([begin("token-ring", "quiet"), begin("heartbeat", "free")]).toEqual(["together", "together"]);
    expect([begin("paxos", "quiet"), begin("ricart-agrawala", "free")]).toEqual(["idle", "idle"]);
  });

  it("an election is notified of crashes unless disabled; a variant with its own detector is not", () => {
    const nodes = [0, 1];
    expect(systemFor({ protocol: "bully", nodes, crashNotifications: "any" }).crashNotification?.(1)).toEqual({
      type: "suspect",
      node: 1,
    });
    expect(systemFor({ protocol: "bully", nodes }).crashNotification).toBeUndefined();
    expect(
      systemFor({ protocol: "bully", nodes, crashNotifications: "any", variant: "monitored" }).crashNotification,
    ).toBeUndefined();
  });

  it.each<[Partial<SystemSpec>, string]>([
    [
      { protocol: "buly" },
      'expected the protocol to be a name listed by `coterie protocols`, got "buly" (did you mean bully?)',
    ],
    [{ variant: "fast" }, "expected the variant to be one of extended, monitored"],
    [{ initiators: [0, 7] }, "expected initiators to be among 0, 1, got 7"],
    [
      { property: "E3" },
      'expected the property to be one of E1 safety, E1 eventually, E2 liveness, E2 termination, got "E3"',
    ],
    [{ options: { patience: 1 } }, "expected bully.patience to be absent, got 1"],
  ])("rejects %j", (words, sentence) => {
    expect(() => systemFor({ protocol: "bully", nodes: [0, 1], ...words })).toThrow(sentence);
  });
});
