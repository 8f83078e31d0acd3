/** Checks that the programs in `examples/` work as described, including the kills and pauses that they suggest. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { transformWithOxc } from "vite";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { onFreePorts } from "../network/free-ports.ts";
import { CLI, until } from "./cluster-under-test.ts";

const folder = mkdtempSync(join(tmpdir(), "coterie-examples-"));
const names = ["lock", "leader", "chat", "counter", "settings"];
const running = new Set<ChildProcess>();

beforeAll(async () => {
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(join(CLI, "..", "..", ".."), join(folder, "node_modules", "coterie"));
  for (const name of names) {
    const source = fileURLToPath(new URL(`../../examples/${name}.ts`, import.meta.url));
    const program = await onFreePorts(readFileSync(source, "utf8"));
    // A reader must stay in the chat even after a pause.
    const chosen = name === "chat" ? program.replace("join({", 'join({ timing: "patient",') : program;
    const { code } = await transformWithOxc(chosen, source);
    writeFileSync(join(folder, `${name}.mjs`), code);
  }
});
afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
  running.clear();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Example {
  readonly child: ChildProcess;
  readonly output: string[];
  readonly exited: Promise<number | null>;
}

function run(name: string, ...args: string[]): Example {
  const child = spawn(process.execPath, [`${name}.mjs`, ...args], {
    cwd: folder,
    stdio: ["pipe", "pipe", "inherit"],
  });
  running.add(child);
  const output: string[] = [];
  child.stdout?.setEncoding("utf8").on("data", (text: string) => output.push(text));
  return { child, output, exited: new Promise((resolve) => child.on("close", resolve)) };
}

test("lock: deposits of three members, in the order of their tokens", async () => {
  const members = ["1", "2", "3"].map((id) => run("lock", id, "5"));
  // Members leave when they are done. The last ones still have a majority, or have to be killed.
  await until("ten deposits are made", () => (deposits().length >= 10 ? true : null));
  const made = deposits(); // More may follow.
  expect(made).toEqual([...new Set(made)].sort((a, b) => a - b));
  expect(members).toHaveLength(3);
});

function deposits(): number[] {
  try {
    return readFileSync(join(folder, "account.log"), "utf8")
      .trim()
      .split("\n")
      .map((line) => Number(line.split(" ")[0]));
  } catch {
    return [];
  }
}

test("leader: another process writes the report when its author is killed or stopped", async () => {
  const members = ["1", "2", "3"].map((id) => run("leader", id));
  const writing = (among: readonly Example[]): Promise<Example> =>
    until("one writes the report", () => among.find(({ output }) => output.length > 0) ?? null);
  const first = await writing(members);
  first.child.kill("SIGKILL");
  const others = members.filter((member) => member !== first);
  const second = await writing(others);
  second.child.kill("SIGINT");
  expect(await second.exited).toBe(0);
});

test("chat: each message reaches all members, and they see each other", async () => {
  const [one, two, three] = ["1", "2", "3"].map((id) => run("chat", id)) as [Example, Example, Example];
  const text = ({ output }: Example): string => output.join("");
  const reads = (member: Example, line: string): Promise<boolean> =>
    until(
      () => `a member reads ${line}, but it has read ${text(member)}`,
      () => text(member).includes(line),
    );
  for (const member of [one, two, three]) await reads(member, "* here are 1, 2, 3\n");
  one.child.stdin?.write("is anyone there?\n");
  await reads(two, "1: is anyone there?\n");
  two.child.stdin?.write("I am\n");
  await reads(three, "1: is anyone there?\n2: I am\n");
  one.child.stdin?.write(`${"x".repeat(60_000)}\nthat was too long\n`);
  await reads(one, "* not sent: expected the payload to be at most 60000 bytes of JSON, got 60002");
  await reads(two, "1: that was too long\n");
  three.child.kill("SIGKILL");
  await reads(one, "* here are 1, 2\n");
  one.child.stdin?.end();
  expect(await one.exited).toBe(0);
});

test("counter: replicas differ without an order, and agree with total order", async () => {
  const { output, exited } = run("counter");
  expect(await exited).toBe(0);
  const [none = [], total = []] = output
    .join("")
    .trim()
    .split("\n")
    .map((line) => line.split(": ")[1]?.split(", ").map(Number));
  expect(new Set(none)).toEqual(new Set([12, 22])); // Either 1 · 2 + 10 or (1 + 10) · 2.
  expect(total).toHaveLength(3);
  expect(new Set(total).size).toBe(1);
});

test("settings: a setting of one member reaches all, and a restarted one has missed nothing", async () => {
  const [one, two, three] = ["1", "2", "3"].map((id) => run("settings", id)) as [Example, Example, Example];
  const text = ({ output }: Example): string => output.join("");
  const sees = (member: Example, line: string): Promise<boolean> =>
    until(
      () => `a member sees ${line}, but it has seen ${text(member)}`,
      () => text(member).includes(line),
    );
  one.child.stdin?.write("color=blue\n");
  for (const member of [one, two, three]) await sees(member, "color is");
  three.child.kill("SIGKILL");
  two.child.stdin?.write("size=9\n");
  await sees(one, "size is now 9\n");
  const again = run("settings", "3");
  await sees(again, "color is blue\nsize is 9\n");
  one.child.stdin?.write("size=10\n");
  await sees(again, "size is now 10\n");
  for (const member of [one, two, again]) member.child.stdin?.end();
  expect(await one.exited).toBe(0);
});
