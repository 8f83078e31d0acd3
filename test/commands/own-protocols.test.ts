/** Checks protocols in users' own files: in every command that takes a protocol, in scenarios, campaigns and configs. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { loadConfig } from "../../src/cluster/protocol-config.ts";
import { loadProtocol, registeredName } from "../../src/cluster/protocol-file.ts";
import { protocolNames } from "../../src/protocols/index.ts";
import { ClusterUnderTest, endAll, until } from "../e2e/cluster-under-test.ts";
import { coterie } from "./run-here.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CLI = join(ROOT, "dist/cli/coterie.js");
const LAMPORT = "./examples/lamport-mutex.ts";
const folder = mkdtempSync(join(tmpdir(), "coterie-own-"));
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(endAll);

/** Writes a file in the test's folder. */
function written(name: string, text: string): string {
  const file = join(folder, name);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, text);
  return file;
}
/** The path of the example, relative to the test's folder. */
const fromFolder = relative(folder, join(ROOT, LAMPORT));

test("coterie sim runs the file like a protocol of the registry", async () => {
  const { code, stdout, stderr } = await coterie("sim", LAMPORT, "--nodes", "4", "--entries", "2", "--json");
  expect([code, stderr]).toEqual([0, ""]);
  const { protocol, messages, properties, outcome } = JSON.parse(stdout);
  expect(protocol).toBe(LAMPORT);
  expect(messages.total).toBe(8 * 9);
  expect(outcome.entries).toHaveLength(8);
  expect(properties.map(({ verdict }: { verdict: string }) => verdict)).toEqual(Array(4).fill("holds"));
});

test("coterie check finds the violation without FIFO links, and the trace can be checked", async () => {
  const trace = join(folder, "violation.jsonl");
  const words = ["--nodes", "2", "--entries", "2"];
  expect((await coterie("check", LAMPORT, ...words)).code).toBe(0);
  const found = await coterie("check", LAMPORT, ...words, "--network", "bag", "--trace", trace);
  expect(found.code).toBe(1);
  expect(found.stdout).toContain("✗ violated  tokens grow");
  const checked = await coterie("trace", trace, "--check");
  expect(checked.code).toBe(1);
  expect(checked.stdout).toContain(LAMPORT);
});

test("coterie protocols shows its properties and costs", async () => {
  const { stdout } = await coterie("protocols", LAMPORT);
  expect(stdout).toContain("(mutual exclusion): requests wait in a queue that");
  expect(stdout).toMatch(/one entry and exit +6 +12 +21/);
});

test("a scenario names the file relative to itself, and errors keep their line", async () => {
  const text = `name: two wait\nprotocol: ${fromFolder}\nnodes: 3\nsteps:\n  - { request: [0, 2] }\n`;
  const sound = written("two-wait.yaml", `${text}expect: { entries: [0, 2] }\n`);
  const { code, stdout } = await coterie("sim", sound);
  expect([code, stdout]).toEqual([0, expect.stringContaining("✓ entries")]);
  const wrong = await coterie("sim", written("wrong.yaml", `${text}  - { propose: 1 }\n`));
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("wrong.yaml:6:7: expected")]);
});

test("a campaign runs it, also in a scenario in another folder", async () => {
  written("inner/one.yaml", `name: one\nprotocol: ../${fromFolder}\nnodes: 3\nsteps: [{ request: 1 }]\n`);
  const file = written(
    "campaign.json",
    JSON.stringify({
      name: "own",
      seeds: { count: 3 },
      experiments: [
        { name: "runs", simulate: { protocol: fromFolder, nodes: 3, delay: "1..40" } },
        { name: "walks", walk: { protocol: fromFolder, nodes: 2 } },
        { name: "story", scenario: "inner/one.yaml" },
      ],
    }),
  );
  const { code, stdout, stderr } = await coterie("campaign", file, "--out", join(folder, "out"), "--json");
  expect([code, stderr]).toEqual([0, ""]);
  expect(JSON.parse(stdout).runs).toBe(9);
});

test("a config names the file relative to itself, and the list of protocols stays the same", async () => {
  const names = [...protocolNames];
  const members = { 1: "127.0.0.1:7101", 2: "127.0.0.1:7102" };
  const file = written("cluster.json", JSON.stringify({ cluster: "own", protocol: fromFolder, members }));
  const { protocol } = await loadConfig(file);
  expect(protocol).toBe(LAMPORT);
  expect(await loadProtocol(LAMPORT)).toBe(LAMPORT);
  expect(protocolNames).toEqual(names);
  expect(registeredName("raft", "anywhere")).toBe("raft");
});

describe("a file is rejected if", () => {
  const defined = (code: string): string =>
    `import { defineProtocol } from ${JSON.stringify(join(ROOT, "src/protocols/index.ts"))};\n${code}`;
  test.each([
    ["it does not exist", null, "to be an existing file, got"],
    [
      "it exports no protocol",
      "export default 3;",
      "to be the result of defineProtocol() from coterie/protocols, got 3",
    ],
    ["it throws", 'throw new Error("broken");', "could not be loaded: Error: broken"],
    [
      "the protocol is incomplete",
      defined('export default defineProtocol({ protocol: { name: "x", init: () => ({}), source: "" } });'),
      "expected the protocol to have shapes, assumes, properties, costs, view",
    ],
  ])("%s", async (what, code, said) => {
    const file = join(folder, `${what.replaceAll(" ", "-")}.ts`);
    if (code !== null) written(relative(folder, file), code);
    const { code: exit, stderr } = await coterie("sim", file);
    expect([exit, stderr.replaceAll(/\s+/g, " ")]).toEqual([2, expect.stringContaining(said)]);
  });
});

test("coterie new protocol writes a file that the built command line runs, on threads as well", async () => {
  const out = join(folder, "fresh");
  const created = await coterie("new", "protocol", "my-maximum", "--out", out, "--summary", "the highest number wins");
  expect(created.code).toBe(0);
  expect(created.stdout).toContain("my-maximum.ts --log");
  // The folder has no package.json, and coterie is not installed there.
  const run = (...words: string[]) => promisify(execFile)(process.execPath, [CLI, ...words], { cwd: out });
  const { stdout } = await run("sim", "my-maximum.ts", "--nodes", "3", "--json");
  expect(JSON.parse(stdout)).toMatchObject({ protocol: "./my-maximum.ts", outcome: { roles: { 0: "knows 20" } } });
  const checked = await run("check", "./my-maximum.ts", "--json");
  expect(JSON.parse(checked.stdout)).toMatchObject({ verdict: "holds", states: 125 });
});

test("coterie up runs it in real processes, which load the same file", async () => {
  const created = await coterie("new", "protocol", "on-processes", "--out", folder);
  expect(created.code).toBe(0);
  const cluster = await ClusterUnderTest.up("--nodes", "3", "--protocol", join(folder, "on-processes.ts"));
  await cluster.command(2, "begin");
  const learned = async () =>
    (await cluster.status()).nodes.map(({ role }) => role).join() === "knows 20,knows 20,knows 20";
  await until("all nodes know the number of node 2", learned, cluster);
});
