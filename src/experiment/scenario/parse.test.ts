import { describe, expect, it } from "vitest";
import { parseScenario } from "./parse.ts";

const head = "name: x\nprotocol: bully\nnodes: 8\n"; // Three lines long.

const refusal = (text: string): string => {
  try {
    parseScenario(text, "x.yaml");
  } catch (error) {
    return (error as Error).message;
  }
  return "it was taken";
};

/** Invalid files, each with the beginning of its error message. */
const refused: readonly [string, string][] = [
  ["", "x.yaml:1:1: expected the scenario to be an object with name, protocol and nodes, got null"],
  [
    "protocol: bully\nnodes: 3",
    'x.yaml:1:1: expected name to be present, such as "The next one crashes too", got undefined',
  ],
  ["name: x\n  protocol: y", "x.yaml:1:7: expected YAML: Nested mappings are not allowed in compact mappings"],
  ["name: x\nname: y", "x.yaml:2:1: expected YAML: Map keys must be unique"],
  [
    "name: x\nprotocol: bully",
    "x.yaml:1:1: expected nodes to be a number of nodes from 1 to 10000000, or a list of ids, got undefined",
  ],
  ["name: x\nprotocol: buly\nnodes: 3", "x.yaml:2:1: expected the protocol to be a name "],
  [`${head}variant: fast`, 'x.yaml:4:1: expected the variant to be one of extended, monitored, got "fast"'],
  [`${head}options:\n  maxDelay: 3`, "x.yaml:4:1: expected bully.maxDelay to be absent, got 3"],
  ["name: x\nprotocol: bully\nnodes: 0", "x.yaml:3:1: expected nodes to be at least 1, got 0"],
  [
    "name: *b\nprotocol: bully",
    'x.yaml:1:7: expected the alias to be one of an earlier anchor, such as *a for &a, got "*b"',
  ],
  [`${head}---\nname: y`, "x.yaml:4:1: expected one scenario, got a second document"],
  [
    `${head}network: { delayMs: { gauss: 3 } }`,
    "x.yaml:4:12: expected network.delayMs to be milliseconds, [least, most], { normal: ",
  ],
  [
    `${head}begin: { states: { 1: { ledar: 1 } } }`,
    "x.yaml:4:25: expected begin.states.1.ledar to be absent: the fields are ",
  ],
  [
    "name: x\nprotocol: ricart-agrawala\nnodes: 3\nbegin: { states: { 1: { mutex: { clock: [3] } } } }",
    "x.yaml:4:34: expected begin.states.1.mutex.clock to be a number, got [3]",
  ],
  ["name: x\nprotocol: heartbeat\nnodes: 3", "x.yaml:1:1: expected until to be set, since heartbeat is never idle"],
  [
    "name: x\nprotocol: causal\nnodes: 4\nsteps: [{ send: 0 }]\nvariants: { bully: { leader: 3 } }",
    "x.yaml:5:13: expected steps[0].send to be absent: bully is a protocol for election; write call",
  ],
  [
    "name: x\nprotocol: causal\nnodes: 4\nlabels: { F1: '0.1' }",
    'x.yaml:4:11: expected a key of labels to be a sender and a message number from 1, such as 0.1, got "F1"',
  ],
  [
    "name: x\nprotocol: causal\nnodes: 4\nexpect: { delivered: { 1: ['1.1', foo] } }",
    'x.yaml:4:35: expected expect.delivered.1[1] to be a sender and a message number from 1, such as 0.1, got "foo"',
  ],
  [`${head}sead: 3`, "x.yaml:4:1: expected sead to be absent, got 3 (did you mean seed?)"],
  [`${head}network: { lossRate: 2 }`, "x.yaml:4:12: expected network.lossRate to be a rate from 0 to 1, got 2"],
  [
    `${head}network:\n  delayMs: [20, 10]`,
    "x.yaml:5:3: expected network.delayMs to be [least, most] with least <= most, got [20,10]",
  ],
  [
    `${head}begin: { down: [7], states: { 7: { phase: idle } } }`,
    "x.yaml:4:31: expected begin.states.7 to be absent: the node is down, got ",
  ],
  [`${head}steps:\n  - crash: 9`, "x.yaml:5:5: expected steps[0].crash to be one of the nodes 0 … 7, got 9"],
  [`${head}steps:\n  - crush: 7`, "x.yaml:5:5: expected steps[0].crush to be absent, got 7 (did you mean crash?)"],
  [
    `${head}steps:\n  - at: 7`,
    'x.yaml:5:5: expected steps[0] to be exactly one action, such as { crash: 7 }, got {"at":7}',
  ],
  [
    `${head}steps:\n  - crash: 7\n    start: 6`,
    'x.yaml:5:5: expected steps[0] to be exactly one action, such as { crash: 7 }, got "crash and start"',
  ],
  [
    `${head}steps:\n  - crash: most`,
    'x.yaml:5:5: expected steps[0].crash to be a node, a list of nodes or "all", got "most"',
  ],
  [
    `${head}steps:\n  - request: 7`,
    "x.yaml:5:5: expected steps[0].request to be absent: bully is a protocol for election; write call",
  ],
  [
    `${head}steps:\n  - { call: 7, withinStep: true }`,
    "x.yaml:5:16: expected steps[0].withinStep to be absent without the crash of a single node, got true",
  ],
  [
    `${head}steps:\n  - { crash: 7, withinStep: true, when: { node: 6, sends: answer } }`,
    'x.yaml:5:35: expected steps[0].when to be a message or event of node 7, for withinStep, got {"node":6,"sends":"answer","occurrence":1}',
  ],
  [
    `${head}steps:\n  - { crash: 7, withinStep: true, after: 5, when: { node: 7, sends: answer } }`,
    "x.yaml:5:35: expected steps[0].after to be absent with withinStep, got 5",
  ],
  [
    `${head}steps:\n  - { call: 7, times: 2 }`,
    "x.yaml:5:16: expected steps[0].times to be absent without request, send or propose, got 2",
  ],
  [
    `${head}steps:\n  - { at: 5, after: 5, call: 7 }`,
    "x.yaml:5:7: expected steps[0].at to be absent with when or after, got 5",
  ],
  [
    `${head}steps:\n  - { at: 50, call: 7 }\n  - { at: 20, call: 6 }`,
    "x.yaml:6:7: expected steps[1].at to be 50 or more, since steps are taken in order, got 20",
  ],
  [
    `${head}until: 40\nsteps:\n  - { at: 50, call: 7 }`,
    "x.yaml:4:1: expected until to be 50 or more, when the last step is taken, got 40",
  ],
  [
    `${head}steps:\n  - when: { node: 5, sends: answr }\n    crash: 6`,
    'x.yaml:5:22: expected steps[0].when.sends to be one of election, answer, coordinator, got "answr" (did you mean answer?)',
  ],
  [
    `${head}steps:\n  - when: { node: 5 }\n    crash: 6`,
    'x.yaml:5:5: expected steps[0].when to be one of sends, receives, emits, timesOut, becomes, got {"node":5,"occurrence":1}',
  ],
  [
    `${head}steps:\n  - when: { emits: elected, to: 4 }\n    crash: 6`,
    "x.yaml:5:29: expected steps[0].when.to to be absent without sends, got 4",
  ],
  [
    `${head}steps:\n  - command: { node: 6, command: { type: suspect } }`,
    "x.yaml:5:25: expected steps[0].command.command.node to be a natural number, got undefined",
  ],
  [
    `${head}byzantine: { 1: liar }`,
    'x.yaml:4:14: expected byzantine.1 to be one of mute, equivocate, replay, withhold, forge, flood, adversary, got "liar"',
  ],
  [
    `${head}expect: { leader: 9x }`,
    'x.yaml:4:11: expected expect.leader to be a node or null, or an object that maps nodes to such values, got "9x"',
  ],
  [
    `${head}expect: { violated: [E3] }`,
    'x.yaml:4:22: expected expect.violated[0] to be one of E1 safety, E1 eventually, E2 liveness, E2 termination, got "E3"',
  ],
  [
    `${head}until: 100\nexpect: { restsByMs: 50 }`,
    "x.yaml:4:1: expected until to be absent with expect.restsByMs: the run ends when it is idle, got 100",
  ],
  [
    "name: x\nprotocol: chang-roberts\nnodes: [1, 15, 1]",
    "x.yaml:3:16: expected nodes[2] to be another id, since each node is listed once, got 1",
  ],
];

describe("a scenario file", () => {
  it("gets defaults for omitted fields", () => {
    const { scenario } = parseScenario(`${head}steps: [{ call: 4 }]`, "x.yaml");
    expect(scenario).toEqual({
      name: "x",
      about: "",
      protocol: "bully",
      options: {},
      nodes: 8,
      seed: 1,
      network: {},
      begin: { down: [], states: {} },
      byzantine: {},
      steps: [{ call: 4 }],
      expect: { violated: [] },
      variants: {},
      labels: {},
    });
  });

  it("may set fields of a node's state to values of the right type", () => {
    const states = "{ 1: { leader: 3 }, 2: { leader: null } }";
    expect(parseScenario(`${head}begin: { states: ${states} }`, "x.yaml").scenario.begin.states).toEqual({
      1: { leader: 3 },
      2: { leader: null },
    });
  });

  it("knows the position of each field", () => {
    const { place } = parseScenario(`${head}steps:\n  - call: 4\n  - { at: 100, crash: [5, 6] }\n`, "x.yaml");
    expect(place(["nodes"])).toBe("x.yaml:3:1");
    expect(place(["steps", 1, "crash"])).toBe("x.yaml:6:16");
    expect(place(["steps", 1, "crash", 1])).toBe("x.yaml:6:27");
    // A missing field has the position of the field around it.
    expect(place(["steps", 0, "when", "node"])).toBe("x.yaml:5:5");
  });

  it.each(refused)("is refused if it is %j", (text, sentence) => {
    expect(refusal(text).slice(0, sentence.length)).toBe(sentence);
    expect(refusal(text)).not.toContain("\n");
  });

  it("is refused if its aliases expand without bound", () => {
    const levels = Array.from({ length: 9 }, (_, i) => `a${i + 1}: &a${i + 1} [${`*a${i}, `.repeat(9)}*a${i}]`);
    expect(refusal(["a0: &a0 [x]", ...levels].join("\n"))).toMatch(/^x\.yaml: expected YAML of a moderate size: /);
  });
});
