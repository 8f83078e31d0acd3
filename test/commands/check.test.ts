/**
 * Checks `coterie check` and `coterie check-history`: their findings, output and rejections. Threads and Ctrl-C are
 * tested with real processes.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import type { TraceEntry } from "../../src/trace/entry.ts";
import { readTrace } from "../../src/trace/file.ts";
import { Coterie, coterie as coterieProcess, endAll, until } from "../e2e/cluster-under-test.ts";
import { coterie } from "./run-here.ts";

afterEach(endAll);

const folder = mkdtempSync(join(tmpdir(), "coterie-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface Answer {
  readonly verdict: string;
  readonly property: string | null;
  readonly states: number;
  readonly why: string | null;
  readonly trace: readonly TraceEntry[] | null;
  readonly transitions: number;
  readonly depth: number;
  readonly run: number | null;
}

async function check(
  words: string,
  run: typeof coterieProcess | typeof coterie = coterie,
): Promise<Answer & { code: number | null }> {
  const { code, stdout, stderr } = await run("check", ...words.split(" "), "--json");
  expect(stdout, stderr).not.toBe("");
  return { code, ...(JSON.parse(stdout) as Answer) };
}

const steps = (trace: Answer["trace"]): number =>
  (trace ?? []).filter(({ kind, at }) => at > 0 && ["start", "receive", "timeout", "command", "crash"].includes(kind))
    .length;

describe("the checker's verdicts on the protocols", () => {
  test("bully with timers that are faster than messages: two leaders, in at most 10 steps", async () => {
    const { code, verdict, property, trace } = await check("bully --nodes 3");
    expect({ code, verdict, property }).toEqual({ code: 1, verdict: "violated", property: "E1 safety" });
    expect(steps(trace)).toBeGreaterThan(0);
    expect(steps(trace)).toBeLessThanOrEqual(10);
  });

  test.each([
    "bully --nodes 3 --timers quiet",
    "bully --nodes 3 --timers quiet --crashes 1 --failure-detector last",
    "bully --nodes 4 --timers quiet --begin idle --call 0",
    "ricart-agrawala --nodes 3",
    "chang-roberts --ring 3,1,2 --call 1,2",
  ])("%s holds", async (words) => {
    expect(await check(words)).toMatchObject({ code: 0, verdict: "holds", property: null, trace: null });
  });

  test("Ricart–Agrawala with a crash: a node waits for the crashed one, and the trace names it", async () => {
    const { code, verdict, property, trace } = await check("ricart-agrawala --nodes 3 --crashes 1");
    expect({ code, verdict, property }).toEqual({ code: 1, verdict: "violated", property: "ME2 liveness" });
    const crashed = trace?.find(({ kind }) => kind === "crash")?.node;
    const waiting = trace?.findLast((entry) => entry.kind === "view" && entry.view.role === "wanted") as
      | (TraceEntry & { state: { mutex: { section: { awaited: number[] } } } })
      | undefined;
    expect(waiting?.state.mutex.section.awaited).toContain(crashed);
  });

  test("Paxos proposers in a duel: a run that continues forever, and the start of its loop", async () => {
    const { code, stdout } = await coterie("check", "paxos", "--propose", "0,1", "--max-states", "20000");
    expect(code).toBe(1);
    expect(stdout).toMatch(/✗ violated {2}termination/);
    expect(stdout).toMatch(/… and so on from step \d+, forever/);
  });

  test("random strategies find, shrink, and prove nothing; equal seeds give the same result", async () => {
    const words = "chang-roberts --nodes 4 --losses 1 --strategy pct --seed 7";
    const [first, again] = [await check(words), await check(words)];
    expect(first).toMatchObject({ code: 1, verdict: "violated", property: "E2 liveness" });
    expect(again.trace).toEqual(first.trace);
    const nothing = await check("chang-roberts --nodes 3 --strategy random --runs 50");
    expect(nothing).toMatchObject({
      code: 1,
      verdict: "unknown",
      why: "random runs can find violations but prove nothing",
    });
  });

  const title = "any number of threads comes to the same answer: %s";
  // src/experiment/together.test.ts contains a shorter version.
  test.each(["pct"])(title, { tags: ["long"] }, sameForAnyThreads);
  test.each(["random", "swarm"])(title, { tags: ["larger"] }, sameForAnyThreads);

  async function sameForAnyThreads(strategy: string): Promise<void> {
    const late = `bully --nodes 4 --timers quiet --begin down --strategy ${strategy} --seed 3`;
    const one = await check(`${late} --workers 1`);
    expect(one).toMatchObject({ code: 1, verdict: "violated", property: "E1 safety" });
    const gist = ({ code, verdict, property, run, trace }: typeof one) => ({ code, verdict, property, run, trace });
    for (const workers of [2, 5])
      expect(gist(await check(`${late} --workers ${workers}`, coterieProcess))).toEqual(gist(one));
    const sound = `bully --nodes 4 --timers quiet --strategy ${strategy} --runs 40`;
    const [alone, shared] = [await check(`${sound} --workers 1`), await check(`${sound} --workers 3`, coterieProcess)];
    const { states, transitions, depth } = alone;
    expect(shared).toMatchObject({ code: 1, verdict: "unknown", runs: 40, states, transitions, depth });
  }

  test("the fewest faults that violate it", async () => {
    const { stdout } = await coterie("check", "ricart-agrawala", "--crashes", "2", "--fewest-faults");
    expect(stdout).toContain("1 fault breaks it; it holds without any");
  });
});

describe("an incomplete search is never a pass", () => {
  test.each([
    ["--max-states 50", "it reached --max-states"],
    ["--max-depth 3", "runs beyond --max-depth were cut off"],
    ["--max-in-flight 1", "runs beyond --max-in-flight were cut off"],
  ])("ricart-agrawala %s: unknown", async (bound, why) => {
    expect(await check(`ricart-agrawala ${bound}`)).toMatchObject({ code: 1, verdict: "unknown", why, trace: null });
  });

  test("an unknown result suggests what to do next", async () => {
    const next = async (words: string): Promise<string> =>
      (await coterie("check", "ricart-agrawala", ...words.split(" "))).stdout.replaceAll(/\s+/g, " ");
    expect(await next("--max-states 50")).toContain("use fewer nodes or faults for a complete search;");
    expect(await next("--max-depth 3")).toContain("raise the bounds; --strategy pct searches some long runs");
    expect(await next("--strategy pct --runs 9")).toContain("more --runs or another --seed may find violations;");
  });

  test("Ctrl-C prints the result so far", () => answerSoFar());
  test("Ctrl-C prints the result so far, of several threads, too", { tags: ["long"] }, () =>
    answerSoFar("--strategy", "swarm", "--runs", "1000000000", "--workers", "3"),
  );

  async function answerSoFar(...words: string[]): Promise<void> {
    const run = new Coterie("check", "bully", "--nodes", "5", "--timers", "quiet", "--json", ...words);
    await until("it reports its progress", () => run.stderr.includes(" states/s"), run);
    run.signal("SIGINT");
    const { code, stdout, stderr } = await run.finished;
    expect(code, stderr).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      verdict: "unknown",
      why: "it was stopped before the search was complete",
      states: expect.any(Number),
    });
  }
});

test("the contract of --json", async () => {
  const { stdout } = await coterie("check", "ricart-agrawala", "--nodes", "3", "--entries", "1", "--json");
  expect(JSON.parse(stdout)).toEqual({
    protocol: "ricart-agrawala",
    nodes: 3,
    verdict: "holds",
    property: null,
    claim: null,
    states: expect.any(Number),
    transitions: expect.any(Number),
    depth: expect.any(Number),
    seconds: expect.any(Number),
    strategy: "bfs",
    runs: null,
    run: null,
    why: null,
    reached: {
      events: expect.objectContaining({ "mutex.entered": expect.any(Number), "mutex.exited": expect.any(Number) }),
      handlers: expect.objectContaining({ "receive mutex.request": expect.any(Number) }),
      never: expect.arrayContaining(["timeout workload.rest"]),
      missing: [],
    },
    loopFrom: null,
    trace: null,
  });
});

test("a counterexample is a trace file: `coterie trace` follows it to the same violation, and draws it", async () => {
  const [file, svg] = [join(folder, "bully.jsonl"), join(folder, "bully.svg")];
  await coterie("check", "bully", "--trace", file, "--svg", svg);
  const { header, entries } = readTrace(readFileSync(file, "utf8"));
  expect(header).toMatchObject({ madeBy: "checker", protocol: "bully", violation: { property: "E1 safety" } });
  expect(entries.length).toBeGreaterThan(0);
  expect(readFileSync(svg, "utf8")).toMatch(/^<svg /);
  const { code, stdout } = await coterie("trace", file, "--check", "--json");
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({ verdict: "violated", doubts: [] });
});

test.each(["check", "check-history"])("coterie %s --help shows an example", async (command) => {
  const { code, stdout } = await coterie(command, "--help");
  expect(code).toBe(0);
  expect(stdout).toContain(`Examples:\n  $ coterie ${command} `);
});

async function refused(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await coterie(...args);
  expect({ code, stdout }, stderr).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(/^coterie: [^\n]+\n$/);
  return stderr.slice("coterie: ".length, -1);
}

test.each([
  ["check", "missing required argument 'protocol'"],
  ["check bully --call 7", "expected --call to be nodes from 0 to 2, got 7"],
  ["check bully --timers fast", 'expected --timers to be free, quiet, rounds, timed or never, got "fast"'],
  ["check bully --seed 3", "expected --strategy random, pct or swarm with --seed, since bfs searches every run"],
  ["check bully --workers 2", "expected --strategy random, pct or swarm with --workers, since bfs runs on one thread"],
  [
    "check bully --strategy pct --max-states 9",
    "expected --strategy bfs or dfs with --max-states: random runs are bounded by --runs and --steps",
  ],
  ["check bully --fewest-faults", "expected faults with --fewest-faults, such as --crashes 2 --losses 2"],
  [
    "check bully --property E9",
    'expected the property to be one of E1 safety, E1 eventually, E2 liveness, E2 termination, got "E9"',
  ],
  [
    "check epoch-bully --crashes 1 --failure-detector",
    'expected --failure-detector to be absent, or of a protocol and variant that handle notifications of crashes, got "epoch-bully, variant bounded"',
  ],
  ["check-history x.edn", "required option '--model <name>' not specified"],
  ["check-history x.edn --model register", 'expected the history to be a readable file, got "x.edn" (ENOENT)'],
  ["check-history x.edn --model lok", 'expected model to be register, map, queue, lock, counter, got "lok"'],
])("coterie %s", async (words, sentence) => {
  expect(await refused(...words.split(" "))).toBe(sentence);
});

describe("check-history", () => {
  const edn = (...events: string[]): string => {
    const file = join(folder, "history.edn");
    writeFileSync(file, events.map((event) => `{${event}}\n`).join(""));
    return file;
  };
  const write = [":process 0, :type :invoke, :f :write, :value 1", ":process 0, :type :ok, :f :write, :value 1"];
  const read = (value: number): string[] => [
    ":process 1, :type :invoke, :f :read, :value nil",
    `:process 1, :type :ok, :f :read, :value ${value}`,
  ];

  test("a file without operations, and values that the model does not accept, are rejected", async () => {
    const file = edn();
    expect(await refused("check-history", file, "--model", "register")).toBe(
      `${file}: expected at least one operation that did not fail, got none`,
    );
    edn(":process 0, :type :invoke, :f :cas, :value 1", ":process 0, :type :ok, :f :cas, :value 1");
    expect(await refused("check-history", file, "--model", "register")).toBe(
      `${file}: line 1: expected the value of the call to be a pair [old, new], got 1`,
    );
  });

  test("a history that is linearizable", async () => {
    const { code, stdout } = await coterie("check-history", edn(...write, ...read(1)), "--model", "register");
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringContaining("✓ holds  linearizability of a register"),
    });
  });

  test("a history that is not: the impossible operation as text, as a picture, and as JSON", async () => {
    const file = edn(...write, ...read(2));
    const { code, stdout, stderr } = await coterie("check-history", file, "--model", "register");
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
    expect(stdout).toContain("read → 2 (process 1, line 3) cannot be placed in any order.");
    expect(stdout).toContain("╞ read → 2 ✗═╡");
    const { stdout: json } = await coterie("check-history", file, "--model", "register", "--json");
    expect(JSON.parse(json)).toMatchObject({
      verdict: "violated",
      model: "register",
      operations: 2,
      objects: [{ verdict: "violated", culprit: { operation: "read → 2", process: 1, line: 3 } }],
    });
  });

  test("a time limit makes it unknown", async () => {
    const file = join(folder, "hard.jsonl");
    const calls = Array.from({ length: 30 }, (_, process) => ({ process, type: "invoke", f: "write", value: process }));
    const returns = calls.map((call) => ({ ...call, type: "ok" }));
    const reads = [
      { process: 40, type: "invoke", f: "read" },
      { process: 40, type: "ok", f: "read", value: 1 },
      { process: 40, type: "invoke", f: "read" },
      { process: 40, type: "ok", f: "read", value: 2 },
      { process: 40, type: "invoke", f: "read" },
      { process: 40, type: "ok", f: "read", value: 1 },
    ];
    const lines = [...calls, ...reads, ...returns].map((event) => `${JSON.stringify(event)}\n`);
    writeFileSync(file, lines.join(""));
    const { code, stdout } = await coterie("check-history", file, "--model", "register", "--time-limit", "1");
    expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining("? unknown") });
  });
});

test("a file that cannot be written is rejected before the search", async () => {
  const file = join(folder, "none", "run");
  for (const option of ["--trace", "--svg"])
    expect(await coterie("check", "ricart-agrawala", "--nodes", "2", option, file)).toEqual({
      code: 2,
      stdout: "",
      stderr: `coterie: expected ${option} to be a writable file, got "${file}" (ENOENT)\n`,
    });
});
