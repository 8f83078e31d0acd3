import { describe, expect, it } from "vitest";
import { eachSize } from "../../test/protocols/sizes.ts";
import type { Delay } from "../sim/delay.ts";
import type { Experiment } from "./experiment.ts";
import { runScenario } from "./scenario/index.ts";
import { scenarioOf } from "./simulate.ts";
import { delay, jsonObject, nodeList, nodesOrAll, rate } from "./written-values.ts";

type Words = Omit<Experiment, "protocol">;

const ran = (protocol: string, words: Words) => runScenario(scenarioOf({ protocol, ...words }));

describe("`coterie sim` without --until", () => {
  it.each<[protocol: string, words: Words]>([
    ["paxos", { crash: [2, 3, 4] }],
    ["ip-multicast", { crash: [2, 3, 4] }],
    ["paxos", { loss: 1 }],
  ])("ends a run if %s retransmits forever: %j", (protocol, words) => {
    const { isOver, timeMs } = ran(protocol, words);
    expect(isOver).toBe(false);
    expect(timeMs).toBeGreaterThan(590_000);
    expect(timeMs).toBeLessThanOrEqual(600_000);
  });

  it.each<[protocol: string, words: Words]>([
    ["chang-roberts", { nodes: 300, delay: 1_000, call: [0] }],
    ["ricart-agrawala", { nodes: 2, delay: [200_000, 300_000] }],
    ["ricart-agrawala", { nodes: 2, entries: 20_000 }],
  ])("gives %s the time that it needs: %j", (protocol, words) => {
    const { isOver, timeMs } = ran(protocol, words);
    expect(isOver).toBe(true);
    expect(timeMs).toBeGreaterThan(600_000);
  });
});

describe("the options of `coterie sim`", () => {
  eachSize(
    3,
    64,
    "send N² − N − 1 messages with --nodes %i if the lowest node calls and the highest has crashed",
    (nodes) => {
      const { messages, outcome } = ran("bully", { nodes, crash: [nodes - 1], call: [0] });
      expect(messages.total).toBe(nodes * nodes - nodes - 1);
      expect(new Set(Object.values((outcome as { leader: object }).leader))).toEqual(new Set([nodes - 2]));
    },
  );

  it("select the lowest alive node or all nodes as initiators by default", () => {
    expect(scenarioOf({ protocol: "bully", crash: [0] }).steps).toEqual([{ call: 1 }]);
    expect(scenarioOf({ protocol: "paxos" }).steps).toEqual([{ propose: 0 }]);
    expect(scenarioOf({ protocol: "ricart-agrawala" }).steps).toEqual([{ request: "all" }]);
    expect(scenarioOf({ protocol: "causal", messages: 3 }).steps).toEqual([{ send: "all", times: 3 }]);
    expect(scenarioOf({ protocol: "bully", started: true }).steps).toEqual([]);
  });

  it("end a run that starts all nodes, because periodic timers are never idle", () => {
    expect(scenarioOf({ protocol: "heartbeat" })).toMatchObject({
      begin: { nodes: "started" },
      until: 10_000,
      steps: [],
    });
    expect(scenarioOf({ protocol: "heartbeat", until: 500 }).until).toBe(500);
  });

  it("select initiators of a protocol that starts all nodes", () => {
    const { outcome } = ran("token-ring", { nodes: 3, request: [2] });
    expect(outcome).toMatchObject({ entries: [{ node: 2, requestedAt: 0 }] });
    expect(scenarioOf({ protocol: "token-ring" }).steps).toEqual([{ request: "all" }]);
  });

  it("address commands to the part of a variant that handles them", () => {
    const { outcome } = ran("bully", { variant: "monitored", call: "all" });
    expect(outcome).toEqual({ leader: { 0: 4, 1: 4, 2: 4, 3: 4, 4: 4 } });
  });

  it("ignore a repeated node", () => {
    expect(scenarioOf({ protocol: "bully", crash: [0, 0] }).begin.down).toEqual([0]);
  });

  it("arrange nodes in a ring", () => {
    const { messages } = ran("chang-roberts", { ring: [1, 15, 9, 4, 3, 17, 24], call: [1] });
    expect(messages.byType).toEqual({ election: 13, elected: 7 });
  });

  it("set the number of entries and messages per node", () => {
    expect(ran("ricart-agrawala", { nodes: 3, entries: 4, request: [1] }).messages.total).toBe(4 * 4);
    expect(ran("causal", { nodes: 3, messages: 4, send: [1, 2] }).messages.total).toBe(2 * 4 * 2);
  });

  it("set delays, losses and duplicates of the network", () => {
    const { network } = scenarioOf({
      protocol: "bully",
      delay: [1, 10],
      loss: 0.1,
      duplicate: 0.2,
      reorder: true,
      processing: 3,
    });
    expect(network).toEqual({ delayMs: [1, 10], lossRate: 0.1, duplicateRate: 0.2, order: "none", processingMs: 3 });
  });

  it.each<[string, Words, string]>([
    [
      "bully",
      { request: "all" },
      "expected --request to be absent: bully is a protocol for election, which has --call instead",
    ],
    [
      "bully",
      { entries: 2 },
      "expected --entries to be absent: bully is a protocol for election, which has no such option",
    ],
    [
      "causal",
      { entries: 2 },
      "expected --entries to be absent: causal is a protocol for multicast, which has --messages instead",
    ],
    ["bully", { ring: [1, 2] }, "expected --ring to be absent: bully does not run on a ring"],
    ["chang-roberts", { ring: [1, 2, 1] }, 'expected --ring to be every node once, got "1,2,1"'],
    ["chang-roberts", { ring: [1, 2], nodes: 3 }, "expected --nodes to be 2, as in --ring, or absent, got 3"],
    ["bully", { crash: [5] }, "expected --crash to be nodes from 0 to 4, got 5"],
    ["chang-roberts", { ring: [3, 7], call: [4] }, "expected --call to be nodes among 3, 7, got 4"],
    ["bully", { nodes: 2, crash: [0, 1] }, 'expected --crash to be some of the nodes, not all, got "0,1"'],
    ["bully", { crash: [4], call: [4] }, "expected --call to be nodes that are not down by --crash, got 4"],
    ["bully", { variant: "fast" }, 'expected the variant to be one of extended, monitored, got "fast"'],
    ["bully", { options: { maxDelay: 3 } }, "expected bully.maxDelay to be absent, got 3"],
  ])("are refused if they do not fit: %s %j", (protocol, words, sentence) => {
    expect(() => scenarioOf({ protocol, ...words })).toThrow(sentence);
  });
});

describe("option values", () => {
  it.each<[string, Delay]>([
    ["10", 10],
    ["0.5", 0.5],
    ["1..10", [1, 10]],
    ["0.5..2.5", [0.5, 2.5]],
    ["normal:10,2", { normal: { meanMs: 10, deviationMs: 2 } }],
    ["lognormal:10,0.5", { logNormal: { medianMs: 10, sigma: 0.5 } }],
  ])("include --delay %s", (text, made) => {
    expect(delay(text, "--delay")).toEqual(made);
  });

  it.each(["", "x", "-1", "1,10", "normal:10", "normal:1..2", "uniform:1,2", "1..", "10ms"])(
    "do not include --delay %j",
    (text) => {
      expect(() => delay(text, "--delay")).toThrow("expected --delay to be such as 10, 1..10, normal:10,2");
    },
  );

  it("have ordered bounds in --delay", () => {
    expect(() => delay("10..1", "--delay")).toThrow("expected --delay to be [least, most]");
  });

  it("include lists of nodes, rates and JSON options", () => {
    expect(nodeList("1,15, 9", "--ring")).toEqual([1, 15, 9]);
    expect(nodesOrAll("all", "--call")).toBe("all");
    expect(rate("0.25", "--loss")).toBe(0.25);
    expect(jsonObject('{"maxDelayMs":10}', "--options")).toEqual({ maxDelayMs: 10 });
    expect(() => nodeList("1,,2", "--ring")).toThrow('expected --ring to be node ids such as 1,15,9, got "1,,2"');
    expect(() => nodesOrAll("some", "--call")).toThrow(
      'expected --call to be node ids such as 1,2, or all, got "some"',
    );
    expect(() => rate("1.5", "--loss")).toThrow('expected --loss to be a rate from 0 to 1, got "1.5"');
    expect(() => jsonObject("[1]", "--options")).toThrow("expected --options to be a JSON object");
  });
});
