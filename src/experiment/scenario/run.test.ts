import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { logLine } from "../../trace/log.ts";
import { runScenario, type ScenarioSource, scenarioSchema } from "./index.ts";

const bounds = { maxDelayMs: 10, processMs: 5 };

/** Runs a scenario with four nodes of bully and the fields that a test adds. */
function played(more: Partial<ScenarioSource>) {
  const scenario = scenarioSchema.parse({ name: "x", protocol: "bully", options: bounds, nodes: 4, ...more });
  const log: string[] = [];
  const result = runScenario(scenario, { trace: (entry) => log.push(logLine(entry).trim()) });
  const told = log.filter((line) => /receives command|crashes|starts|pauses|resumes|fault:/.test(line));
  return { result, log, told: told.filter((line) => !/^0\.0 .*starts/.test(line)) };
}

const failed = (more: Partial<ScenarioSource>) =>
  played(more)
    .result.expectations.filter(({ passed }) => !passed)
    .map(({ what, actual }) => [what, actual]);

describe("the steps of a scenario", () => {
  it("are taken in order, at their times", () => {
    const { told } = played({
      steps: [{ call: 0 }, { at: 12, call: 1 }, { after: 5, call: 2 }, { call: 3 }, { at: 17, crash: 3 }],
    });
    expect(told).toEqual([
      "0.0  node 0  receives command call",
      "12.0  node 1  receives command call",
      "17.0  node 2  receives command call",
      "17.0  node 3  receives command call",
      "17.0  node 3  crashes",
    ]);
  });

  it("wait for a node's messages, events, roles and timers", () => {
    const { told } = played({
      variant: "extended",
      begin: { down: [3] },
      steps: [
        { call: 0 },
        { when: { node: 0, sends: "election", to: 2 }, command: { node: 0, command: { type: "suspect", node: 3 } } },
        {
          when: { node: 2, receives: "election", from: 0 },
          command: { node: 2, command: { type: "suspect", node: 0 } },
        },
        {
          when: { node: 0, receives: "answer", occurrence: 2 },
          command: { node: 0, command: { type: "suspect", node: 1 } },
        },
        { when: { timesOut: "answer" }, command: { node: 1, command: { type: "suspect", node: 0 } } },
        { when: { node: 0, emits: "elected" }, after: 3, command: { node: 0, command: { type: "suspect", node: 1 } } },
        { at: 100, call: 2 },
        { when: { becomes: "leader" }, crash: 2 },
      ],
    });
    expect(told.map((line) => line.split("  ")[0])).toEqual(["0.0", "0.0", "10.0", "20.0", "35.0", "48.0", "100.0"]);
  });

  it("are taken right after their condition, before any other event of that moment", () => {
    const { log } = played({ steps: [{ call: 0 }, { when: { node: 1, receives: "election" }, crash: [1, 2] }] });
    const at = log.findIndex((line) => line.includes("node 1  crashes"));
    expect(log.slice(0, at).some((line) => line.includes("node 2  receives"))).toBe(false);
  });

  it("are reported if their condition never comes true, and later steps are not taken", () => {
    expect(
      failed({ steps: [{ call: 3 }, { when: { node: 0, sends: "answer", occurrence: 2 }, crash: 1 }, { crash: 2 }] }),
    ).toEqual([["steps[1].when", "it never happened"]]);
    expect(played({ steps: [{ when: { emits: "elected" }, crash: 1 }] }).result.nodesAlive).toEqual([0, 1, 2, 3]);
  });

  it("list the actual events or roles if they wait for one that does not exist", () => {
    const call0 = { call: 0 };
    expect(failed({ steps: [call0, { when: { emits: "bar" }, crash: 1 }] })).toEqual([
      ["steps[1].when", "it never happened: the events were elected"],
    ]);
    expect(failed({ steps: [call0, { when: { becomes: "king" }, crash: 1 }] })[0]?.[1]).toMatch(
      /^it never happened: the roles were .*leader/,
    );
  });

  it("are reported if they come too late", () => {
    expect(
      failed({ steps: [{ call: 3 }, { when: { emits: "elected", node: 0 }, call: 2 }, { at: 5, call: 1 }] }),
    ).toEqual([["steps[2].at", "the step before was taken at 10"]]);
  });

  it("throw an error with their index if they are impossible", () => {
    expect(() => played({ begin: { down: [2] }, steps: [{ call: 0 }, { crash: 2 }] })).toThrow(
      "steps[1]: expected node 2 to be alive, but it has crashed",
    );
    expect(() => played({ steps: [{ resume: 2 }] })).toThrow("steps[0]: expected node 2 to be paused");
  });

  it("crash, start, pause and resume all or some nodes", () => {
    const { told } = played({
      steps: [{ crash: "all" }, { start: "all" }, { at: 20, pause: [0, 1] }, { after: 5, resume: 0 }],
      until: 300,
    });
    expect(told.filter((line) => line.includes("crashes"))).toHaveLength(4);
    expect(told.slice(-3)).toEqual(["20.0  node 0  pauses", "20.0  node 1  pauses", "25.0  node 0  resumes"]);
  });

  it("crash a node within its step, before its remaining messages are sent", () => {
    const struck = { when: { node: 0, sends: "election", to: 2 }, crash: 0, withinStep: true } as const;
    const { log, result } = played({ steps: [{ call: 0 }, struck, { at: 1, call: 1 }] });
    const own = log.filter((line) => line.startsWith("0.0  node 0") && !line.includes("is now"));
    expect(own.filter((line) => !line.endsWith("starts"))).toEqual([
      "0.0  node 0  receives command call",
      "0.0  node 0  sends election to 1",
      "0.0  node 0  sends election to 2",
      "0.0  node 0  crashes within this step",
    ]);
    expect([result.nodesAlive, result.expectations.filter(({ passed }) => !passed)]).toEqual([[1, 2, 3], []]);
  });

  it("set clock rates, and cut, mend, partition, heal and change links", () => {
    const { log } = played({
      steps: [
        { clock: { node: 0, rate: 2 } },
        { cut: { from: 0, to: "all" } },
        { mend: { from: 0, to: [1, 2] } },
        { partition: [[0, 1]] },
        { partition: { oneWay: { from: [0], to: [1, 2, 3] } } },
        { partition: { bridge: 2 } },
        { partition: { majorityRing: true } },
        { heal: "all" },
        { link: { from: 0, to: 1, delayMs: 70 } },
        { cut: { from: 0, to: 3 } },
        { call: 0 },
      ],
    });
    expect(log).toContain("0.0  node 0  message lost, to 3 (cut)");
    expect(log).toContain("10.0  node 2  receives election from 0");
    expect(log).toContain("70.0  node 1  receives election from 0");
  });

  it.each<[NonNullable<ScenarioSource["steps"]>[number]["journal"], string]>([
    ["kept", "from 0"],
    ["lost", "from 2"],
  ])("crash a node whose journal is %s", (journal, decided) => {
    const { result } = played({
      protocol: "paxos",
      options: {},
      nodes: 3,
      steps: [
        { partition: [[0, 1], [2]] },
        { propose: 0 },
        { when: { node: 0, emits: "decided" }, crash: 1, ...(journal === undefined ? {} : { journal }) },
        { start: 1 },
        { partition: [[0], [1, 2]] },
        { propose: 2 },
      ],
    });
    expect(result.outcome).toMatchObject({ decided: { 0: "from 0", 2: decided } });
  });
});

describe("the beginning of a scenario", () => {
  it.each(["heartbeat", "token-ring"])("starts %s, which does nothing before it is started", (protocol) => {
    expect(played({ protocol, options: {}, until: 1_000 }).result.messages.total).toBeGreaterThan(10);
    const idle = { protocol, options: {}, until: 1_000, begin: { nodes: "idle" } } as const;
    expect(played(idle).result.messages.total).toBe(0);
  });
});

describe("the network of a scenario", () => {
  const calls = { steps: [{ call: 0 }] };
  const received = (network: ScenarioSource["network"], line: RegExp) =>
    played({ ...calls, ...(network === undefined ? {} : { network }) }).log.filter((each) => line.test(each));

  it("has delays for all links or one link, losses and duplicates", () => {
    expect(received({ delayMs: 20 }, /^20\.0 .* receives election from 0/)).toHaveLength(3);
    expect(received({ links: [{ from: 0, to: 3, delayMs: 7 }] }, /^7\.0 {2}node 3 {2}receives election/)).toHaveLength(
      1,
    );
    expect(received({ lossRate: 1 }, /receives election/)).toHaveLength(0);
    const { messages, lost } = played({ ...calls, network: { lossRate: 1 } }).result;
    expect([messages.total, lost]).toEqual([expect.any(Number), messages.total]);
    expect(played({ ...calls, begin: { down: [1, 2, 3] } }).result.lost).toBe(3);
    expect(received({ duplicateRate: 1 }, /receives election from 0/)).toHaveLength(6);
  });

  it("keeps nodes busy", () => {
    expect(received({ processingMs: 4 }, /node 3 {2}receives election from 0/)[0]).toMatch(/^14\.0/);
  });

  it("has Byzantine nodes", () => {
    const { result } = played({ ...calls, byzantine: { 3: "mute" } });
    expect(result.outcome).toMatchObject({ leader: { 0: 2, 1: 2 } });
  });
});

describe("an expectation of a scenario", () => {
  const election = { begin: { down: [3] }, steps: [{ call: 0 }] };

  it.each<[ScenarioSource["expect"], [string, unknown][]]>([
    [{ leader: 2 }, []],
    [{ leader: { 0: 2, 2: 2 } }, []],
    [{ leader: 3 }, [["leader", 2]]],
    [{ leader: { 0: 2, 1: null } }, [["leader", { 0: 2, 1: 2 }]]],
    [{ messages: 11 }, []],
    [
      { messages: { total: 12, byType: { election: 6, resign: 1 } } },
      [
        ["messages", 11],
        ["messages.byType.resign", 0],
      ],
    ],
    [{ violated: ["E1 safety"] }, [["violated", []]]],
    [{ restsByMs: 45 }, []],
    [{ restsByMs: 44 }, [["restsByMs", 45]]],
  ])("is compared with the result: %j", (expected, unmet) => {
    expect(failed({ ...election, expect: expected })).toEqual(unmet);
  });

  it("can list the nodes that entered, in order, and the waiting nodes", () => {
    const mutex: Partial<ScenarioSource> = {
      protocol: "ricart-agrawala",
      options: {},
      steps: [{ request: [1, 2], times: 2 }],
    };
    expect(failed({ ...mutex, expect: { entries: [1, 2, 1, 2], waiting: [] } })).toEqual([]);
    expect(failed({ ...mutex, expect: { entries: [2, 1], waiting: [3] } })).toEqual([
      ["entries", [1, 2, 1, 2]],
      ["waiting", []],
    ]);
  });

  it("can be that consensus without a majority decides nothing, which is not yet a violation", () => {
    const { result } = played({
      protocol: "paxos",
      options: {},
      begin: { down: [0, 1] },
      steps: [{ propose: 2 }],
      until: 5_000,
      expect: { decided: null },
    });
    expect(result.expectations.every(({ passed }) => passed)).toBe(true);
    expect(result.properties.map(({ name, verdict }) => [name, verdict])).toEqual([
      ["agreement", "holds"],
      ["integrity", "holds"],
      ["termination", "unknown"],
    ]);
  });
});

describe("the verdict on a property", () => {
  const said = (more: Partial<ScenarioSource>, properties: "every step" | "at the end" = "every step") => {
    const source = { name: "x", protocol: "bully", options: bounds, nodes: 3, ...more };
    const result = runScenario(scenarioSchema.parse(source), { properties });
    return Object.fromEntries(result.properties.map(({ name, verdict, why }) => [name, [verdict, why]]));
  };

  it("is unknown or holds so far if the run was cut off", () => {
    const heartbeat: Partial<ScenarioSource> = {
      protocol: "heartbeat",
      options: {},
      begin: { nodes: "started", down: [2] },
    };
    expect(said({ ...heartbeat, until: 200 })).toMatchObject({
      "strong completeness": ["unknown", "not true when the run was cut off"],
    });
    expect(said({ ...heartbeat, until: 9_000 })).toMatchObject({ "strong completeness": ["holds", "so far"] });
  });

  it("is unknown if a node still waits when the run is cut off", () => {
    const mutex = { protocol: "ricart-agrawala", options: {}, steps: [{ request: 0 }] };
    expect(said({ ...mutex, until: 5 })).toMatchObject({
      "ME1 safety": ["holds", "so far"],
      "ME2 no starvation": ["unknown", "node 0 was still waiting when the run was cut off"],
    });
    expect(said(mutex)).toMatchObject({ "ME2 no starvation": ["holds", ""] });
  });

  it("is violated if a node has waited for more than half of a long run, even if timers never stop", () => {
    const alone: Partial<ScenarioSource> = {
      protocol: "view-synchrony",
      options: {},
      steps: [{ at: 1_000, crash: [1, 2] }],
    };
    const silence = "views: no node stays silent";
    expect(said({ ...alone, until: 8_000 })[silence]).toMatchObject([
      "unknown",
      "node 0 was still waiting when the run was cut off",
    ]);
    expect(said({ ...alone, until: 30_000 })[silence]).toEqual(["violated", ""]);
  });

  it("does not depend on the end if the run is idle before it", () => {
    const stuck = { protocol: "ricart-agrawala", options: {}, begin: { down: [2] }, steps: [{ request: 0 }] };
    expect(said({ ...stuck, until: 1_000 })).toEqual(said(stuck));
    expect(said(stuck)).toMatchObject({ "ME1 safety": ["holds", ""], "ME2 liveness": ["violated", ""] });
  });

  it("is unknown for a property of idle states if the run was never idle", () => {
    const election = { steps: [{ call: 0 }] };
    expect(said({ ...election, until: 5 })).toMatchObject({ "E2 liveness": ["unknown", "the run was never idle"] });
    expect(said(election)).toMatchObject({ "E2 liveness": ["holds", ""] });
  });

  it("is unknown if properties are checked only at the end", () => {
    expect(said({ steps: [{ call: 0 }] }, "at the end")).toMatchObject({
      "E1 safety": ["unknown", "checked only at the end"],
      "E2 liveness": ["unknown", "checked only at the end"],
    });
  });
});

describe("the same scenario", () => {
  it("gives the same run for any steps and network", () => {
    const steps = fc.array(
      fc.oneof(
        fc.record({ after: fc.nat(30), call: fc.nat(3) }),
        fc.record({ after: fc.nat(30), link: fc.record({ from: fc.nat(3), to: fc.nat(3), delayMs: fc.nat(40) }) }),
        fc.record({ after: fc.nat(30), cut: fc.record({ from: fc.nat(3), to: fc.nat(3) }) }),
      ),
      { maxLength: 6 },
    );
    const conditions = fc.record({
      lossRate: fc.double({ min: 0, max: 0.5, noNaN: true }),
      duplicateRate: fc.double({ min: 0, max: 0.5, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.nat(), steps, conditions, (seed, steps, network) => {
        const more = { seed, steps, network: { delayMs: [1, 30] as [number, number], ...network }, until: 2_000 };
        expect(played(more).log).toEqual(played(more).log);
      }),
      { numRuns: 50 },
    );
  });
});
