/** Checks `coterie sim` and `coterie protocols`: their output and their exit codes. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { protocolNames } from "../../src/protocols/index.ts";
import { readTrace } from "../../src/trace/file.ts";
import { coterie } from "./run-here.ts";

const folder = mkdtempSync(join(tmpdir(), "coterie-test-"));
afterAll(() => rmSync(folder, { recursive: true }));
const scenario = (name: string): string => fileURLToPath(new URL(`../../scenarios/${name}.yaml`, import.meta.url));

async function json(
  ...args: string[]
): Promise<{ code: number | null; value: Record<string, unknown>; stderr: string }> {
  const { code, stdout, stderr } = await coterie("sim", ...args, "--json");
  return { code, value: JSON.parse(stdout) as Record<string, unknown>, stderr };
}

describe("coterie sim PROTOCOL", () => {
  test("prints one object", async () => {
    const { code, value } = await json("bully", "--nodes", "8", "--crash", "7", "--call", "4", "--seed", "1");
    expect(code).toBe(0);
    expect(value).toEqual({
      protocol: "bully",
      nodes: 8,
      seed: 1,
      timeMs: expect.any(Number) as number,
      messages: { total: 15, byType: { election: 6, answer: 3, coordinator: 6 } },
      lost: 3,
      outcome: { leader: { 0: 6, 1: 6, 2: 6, 3: 6, 4: 6, 5: 6, 6: 6 } },
      properties: ["E1 safety", "E1 eventually", "E2 liveness", "E2 termination"].map((name) => ({
        name,
        verdict: "holds",
      })),
      nodesAlive: [0, 1, 2, 3, 4, 5, 6],
    });
  });

  test("prints the same for people", async () => {
    const { code, stdout } = await coterie("sim", "chang-roberts", "--ring", "1,15,9,4,3,17,24", "--call", "1");
    expect(code).toBe(0);
    expect(stdout).toContain("20: 13 election, 7 elected");
    expect(stdout).toContain("✓ E1 safety");
    expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  test("a violated property: exit code 1, and its name", async () => {
    const { code, value, stderr } = await json("ricart-agrawala", "--nodes", "3", "--crash", "2", "--request", "0");
    expect(code).toBe(1);
    expect(value.properties).toContainEqual({ name: "ME2 liveness", verdict: "violated" });
    expect(value.properties).toContainEqual({ name: "ME2 no starvation", verdict: "violated" });
    expect(stderr).toBe("");
  });

  test("several runs: a summary, and the command that shows one of the failures", async () => {
    const { code, stdout } = await coterie(
      ...["sim", "bully", "--nodes", "3", "--call", "all", "--delay", "1..100"],
      ...["--options", '{"maxDelayMs":10,"processMs":5}', "--runs", "40"],
    );
    expect(code).toBe(1);
    const [, replay = ""] = /^ {2}coterie (sim .*--log)$/m.exec(stdout) ?? [];
    const words = replay.split(" ").map((word) => word.replaceAll("'", ""));
    const again = await coterie(...words);
    expect([again.code, again.stdout]).toEqual([1, expect.stringContaining("✗ E1 safety") as string]);
  });

  test("saves its trace, and continues from it differently", async () => {
    const file = join(folder, "run.jsonl");
    await coterie("sim", "bully", "--variant", "monitored", "--started", "--until", "3000", "--trace", file);
    const { header, entries } = readTrace(readFileSync(file, "utf8"));
    expect(header).toMatchObject({ madeBy: "simulator", protocol: "bully", variant: "monitored", seed: 1 });
    expect(entries.length).toBeGreaterThan(1_000);
    const { code, value } = await json("--from", file, "--until", "2000", "--crash", "4", "--for", "2000");
    expect([code, value.outcome]).toEqual([0, { leader: { 0: 3, 1: 3, 2: 3, 3: 3 } }]);
  });

  test("draws itself", async () => {
    const file = join(folder, "run.svg");
    await coterie("sim", "paxos", "--svg", file);
    expect(readFileSync(file, "utf8")).toMatch(/^<svg /);
  });

  test.each([
    ["bully --json --log", "expected --json or --log, got both"],
    [
      "bully --until #5",
      'expected --until to be a time in milliseconds, since a number of entries requires --from, got "#5"',
    ],
    [
      "bully --seed 4294967295 --runs 2",
      "expected the seed to be at most 4294967294, since each of the 2 runs uses the next seed, got 4294967295",
    ],
    ["bully --for 5", "expected --for to be absent without --from"],
    ["", "expected a protocol, a scenario file or --from"],
    ["none.yaml", 'expected the scenario to be a readable file, got "none.yaml" (ENOENT)'],
  ])("coterie sim %s is rejected", async (words, sentence) => {
    const { code, stdout, stderr } = await coterie("sim", ...words.split(" ").filter((word) => word !== ""));
    expect([code, stdout, stderr]).toEqual([2, "", `coterie: ${sentence}\n`]);
  });
});

describe("coterie sim FILE", () => {
  test("prints the expected and the actual result", async () => {
    const { code, value } = await json(scenario("bully-b-next-crashes-too"));
    expect(code).toBe(0);
    expect(value).toMatchObject({
      scenario: "Bully (b): the next-highest node crashes too",
      protocol: "bully",
      nodes: 8,
    });
    expect(value.expectations).toContainEqual({ what: "leader", expected: 5, actual: 5, passed: true });
  });

  test("under another named protocol, with the messages' names in the report and in the picture", async () => {
    const file = scenario("order-demonstration");
    const { code, value } = await json(file, "--protocol", "isis");
    expect(code).toBe(0);
    expect(value).toMatchObject({ protocol: "isis", messages: { total: 63 } });
    const svg = join(folder, "isis.svg");
    const drawn = await coterie("sim", file, "--protocol", "isis", "--svg", svg);
    expect(drawn.code).toBe(0);
    expect(drawn.stdout).toMatch(/^delivered {3}F2 F1 C1 C2 C3 T2 T1, at 0–3$/m);
    expect(drawn.stdout).toMatch(/^names {7}F1 = 0\.1, F2 = 0\.2, .*, T2 = 0\.4$/m);
    expect(readFileSync(svg, "utf8")).toContain("<title>T2 is held back</title>");

    const unnamed = await coterie("sim", file, "--protocol", "paxos");
    expect(unnamed.code).toBe(2);
    expect(unnamed.stderr).toContain(
      "expected the protocol to be one that the scenario names: basic-multicast, fifo, ",
    );
    const twice = await coterie("sim", "fifo", "--protocol", "isis");
    expect(twice.code).toBe(2);
    expect(twice.stderr).toContain('expected --protocol to be absent with a protocol, got "isis"');
  });

  test("an expected violation is not a failure, an unexpected one is", async () => {
    const text = readFileSync(scenario("bully-broken-by-recovery"), "utf8");
    expect((await coterie("sim", scenario("bully-broken-by-recovery"))).code).toBe(0);
    const file = join(folder, "broken.yaml");
    writeFileSync(file, text.replace(/ +violated: .*\n/, ""));
    const { code, stdout, stderr } = await coterie("sim", file);
    expect([code, stderr]).toEqual([1, ""]);
    expect(stdout).toMatch(/✗ E1 safety[^✗]*✗ E1 eventually/);
  });

  test("a mistake in it is named with its line", async () => {
    const file = join(folder, "wrong.yaml");
    writeFileSync(file, "name: x\nprotocol: bully\nnodes: 3\nsteps:\n  - crash: 9\n");
    const { code, stderr } = await coterie("sim", file);
    expect([code, stderr]).toEqual([
      2,
      `coterie: ${file}:5:5: expected steps[0].crash to be one of the nodes 0, 1, 2, got 9\n`,
    ]);
    expect((await coterie("sim", file, "--nodes", "4")).stderr).toBe(
      `coterie: expected --nodes to be absent, because ${file} describes the run\n`,
    );
  });

  test("so is a mistake that shows only in the run", async () => {
    const file = join(folder, "twice.yaml");
    writeFileSync(file, "name: x\nprotocol: bully\nnodes: 3\nsteps:\n  - crash: 2\n  - crash: 2\n");
    const { code, stderr } = await coterie("sim", file);
    expect([code, stderr]).toEqual([
      2,
      `coterie: ${file}:6:5: steps[1]: expected node 2 to be alive, but it has crashed\n`,
    ]);
  });
});

test("a file that cannot be written is rejected before the run", async () => {
  for (const option of ["--trace", "--svg"]) {
    const file = join(folder, "none", "run");
    const { code, stdout, stderr } = await coterie("sim", "bully", "--log", option, file);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toBe(`coterie: expected ${option} to be a writable file, got "${file}" (ENOENT)\n`);
  }
});

describe("coterie protocols", () => {
  test("lists all, within 80 columns", async () => {
    const { code, stdout } = await coterie("protocols");
    expect(code).toBe(0);
    for (const name of protocolNames) expect(stdout).toContain(`  ${name} `);
    expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  test("shows one in full, and as JSON", async () => {
    const { stdout } = await coterie("protocols", "bully");
    for (const words of ["E1 safety", "reliable links", "4,031", "monitored"]) expect(stdout).toContain(words);
    const one = JSON.parse((await coterie("protocols", "bully", "--json")).stdout) as Record<string, unknown>;
    expect(one).toMatchObject({
      name: "bully",
      family: "election",
      variants: [{ name: "extended" }, { name: "monitored" }],
    });
    const all = JSON.parse((await coterie("protocols", "--json")).stdout) as { name: string }[];
    expect(all.map(({ name }) => name)).toEqual(protocolNames);
  });

  test("an unknown one", async () => {
    const { code, stderr } = await coterie("protocols", "bulli");
    expect([code, stderr]).toEqual([
      2,
      'coterie: expected the protocol to be a name listed by `coterie protocols`, got "bulli" (did you mean bully?)\n',
    ]);
  });
});
