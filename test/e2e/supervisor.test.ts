/**
 * Checks the supervisor: the command does not outlive its grant, no matter what happens to the supervisor or its
 * parent.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { execPath } from "node:process";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { Supervisor } from "../../src/cli/supervisor/supervisor.ts";
import {
  type FromSupervisor,
  MAX_LINE_LENGTH,
  monotonicMs,
  PIPE,
  type ToSupervisor,
} from "../../src/cli/supervisor/supervisor-lines.ts";
import { eachLine } from "../../src/cluster/local/lines.ts";
import { PATIENCE_MS } from "../patience.ts";
import { CLI, isAlive, parentOf, until } from "./cluster-under-test.ts";

const SCRIPT = join(dirname(CLI), "supervisor", "supervisor-process.js");
const folder = mkdtempSync(join(tmpdir(), "coterie-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

const started: Supervisor[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((supervisor) => supervisor.dismiss()));
});

function supervisor(): Supervisor {
  const one = new Supervisor(SCRIPT);
  started.push(one);
  return one;
}

let runs = 0;

/** Runs a shell script under a supervisor. The script reports at `READY` that it runs, and `pid` waits for that. */
function run(one: Supervisor, script: string, graceMs = 100) {
  runs += 1;
  const file = join(folder, `pid-${runs}`);
  const ended = one.run({
    command: ["sh", "-c", script.replace("READY", () => `echo $$ > ${file}`)],
    env: { COTERIE_TOKEN: "7" },
    graceMs,
  });
  ended.catch(() => {});
  return { ended, pid: () => until("the command runs", () => Number(read(file))) };
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

const STUBBORN = "trap '' TERM INT HUP; READY; while :; do sleep 0.05; done";

describe("how a command ends", () => {
  test.each([
    ["exit 0", { type: "ended", code: 0, signal: null }],
    ["exit 42", { type: "ended", code: 42, signal: null }],
    ["kill -9 $$", { type: "ended", code: null, signal: "SIGKILL" }],
    ['exit "$COTERIE_TOKEN"', { type: "ended", code: 7, signal: null }],
  ])("%s", async (script, how) => {
    expect(await run(supervisor(), script).ended).toEqual(how);
  });

  test.each([
    ["is not there", ["no-such-command"], "ENOENT"],
    ["cannot be executed", [tmpdir()], "EACCES"],
    ["has too long an argument", ["true", "x".repeat(3_000_000)], "E2BIG"],
  ])("%s is not started", async (_what, command, code) => {
    expect(await supervisor().run({ command, env: {}, graceMs: 100 })).toEqual({ type: "not-started", code });
  });

  test.runIf(process.platform === "linux")("a command does not see the supervisor's pipe", async () => {
    const file = join(folder, "files");
    await run(supervisor(), `for each in 3 4 5 6 7 8 9; do readlink /proc/$$/fd/$each; done > ${file}; true`).ended;
    expect(read(file)).not.toContain("socket:");
  });
});

describe("signals", () => {
  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("%s is passed on", async (name) => {
    const one = supervisor();
    const file = join(folder, `ready-${name}`);
    const script = `fs.writeFileSync("${file}", "yes"); setInterval(() => {}, 1_000);`; // A shell may delay a signal.
    const ended = one.run({ command: [process.execPath, "-e", script], env: {}, graceMs: 100 });
    await until("the command runs", () => read(file));
    one.signal(name);
    expect(await ended).toEqual({ type: "ended", code: null, signal: name });
  });

  test("stop sends SIGTERM, and SIGKILL to a command that ignores it", async () => {
    const one = supervisor();
    const { ended, pid } = run(one, STUBBORN);
    await pid();
    one.stop();
    expect(await ended).toMatchObject({ signal: "SIGKILL" });
  });

  test("a paused command is stopped as well", async () => {
    const one = supervisor();
    const { ended, pid } = run(one, "READY; kill -STOP $$", 60_000);
    await pid();
    one.stop();
    expect(await ended).toMatchObject({ signal: "SIGTERM" });
  });

  test("signals to a whole service do not end the supervisor itself", async () => {
    const one = supervisor();
    const go = join(folder, "go");
    const { ended, pid } = run(one, `READY; until test -e ${go}; do sleep 0.05; done; exit 3`);
    const supervisors = parentOf(await pid());
    for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.kill(supervisors, name);
    writeFileSync(go, "");
    expect(await ended).toMatchObject({ code: 3 });
  });
});

describe("the grant's end", () => {
  test("without a confirmation the command receives a signal before the end, and is dead by then", async () => {
    const one = supervisor();
    const { ended, pid } = run(one, STUBBORN);
    await pid(); // Before its trap, a signal would end the script.
    one.certain(monotonicMs() + 1_000);
    expect(await ended).toMatchObject({ signal: "SIGKILL" });
    expect(one.isOverdue).toBe(true);
  });

  test("each confirmation postpones it", { tags: ["long"] }, async () => {
    const one = supervisor();
    const go = join(folder, "confirmed");
    const { ended, pid } = run(one, `READY; until test -e ${go}; do sleep 0.05; done; exit 5`);
    await pid();
    const first = monotonicMs() + 5_000;
    one.certain(first);
    while (monotonicMs() < first + 500) {
      await sleep(100);
      one.certain(monotonicMs() + PATIENCE_MS);
    }
    writeFileSync(go, "");
    expect(await ended).toMatchObject({ code: 5 });
    expect(one.isOverdue).toBe(false);
  });

  test("a command whose grant has ended is not started", async () => {
    const one = supervisor();
    one.certain(monotonicMs() - 1);
    expect(await run(one, "READY").ended).toMatchObject({ signal: "SIGTERM" });
    expect(one.isOverdue).toBe(true);
    expect(read(join(folder, `pid-${runs}`))).toBe("");
  });

  test("a process that was paused learns of the end, even if it first sends a confirmation", async () => {
    const one = supervisor();
    const { ended, pid } = run(one, "READY; exec sleep 60");
    const command = await pid();
    one.certain(monotonicMs() + 1_000);
    const [flag, deadline] = [new Int32Array(new SharedArrayBuffer(4)), Date.now() + PATIENCE_MS];
    while (isAlive(command) && Date.now() < deadline) Atomics.wait(flag, 0, 0, 10); // No other code runs here.
    Atomics.wait(flag, 0, 0, 200);
    one.certain(monotonicMs() + 1_000);
    expect(await ended).toMatchObject({ signal: "SIGTERM" });
  });

  test("works without the supervisor while it is paused", { tags: ["long"] }, async () => {
    const one = supervisor();
    const { ended, pid } = run(one, STUBBORN);
    const command = await pid();
    await until("both sides know which process it is", () => one.group);
    process.kill(parentOf(command), "SIGSTOP");
    one.certain(monotonicMs() + 500);
    await until("the command has exited", () => !isAlive(command));
    await expect(ended).rejects.toMatchObject({ code: "supervisor-ended" });
    expect(one.isOverdue).toBe(true);
  });

  test("a supervisor that wakes after the end kills the command, and reports the reason", async () => {
    const process = spawn(execPath, [SCRIPT], { stdio: ["ignore", "ignore", "inherit", "pipe"], detached: true });
    const pipe = process.stdio[PIPE] as Duplex;
    const words: FromSupervisor[] = [];
    eachLine(pipe, MAX_LINE_LENGTH, (line) => words.push(JSON.parse(line) as FromSupervisor));
    const says = (type: FromSupervisor["type"]) => until(type, () => words.find((word) => word.type === type));
    const tell = (word: ToSupervisor): void => void pipe.write(`${JSON.stringify(word)}\n`);
    await says("ready");
    tell({ type: "run", command: ["sleep", "600"], env: {}, until: null, graceMs: 60_000 });
    await says("started");
    tell({ type: "certain", until: monotonicMs() });
    await says("ended");
    expect(words.map(({ type }) => type)).toEqual(["ready", "started", "overdue", "ended"]);
    pipe.destroy();
  });
});

describe("no process is left", () => {
  test("of the background processes of a command", async () => {
    const file = join(folder, "child");
    const { ended } = run(supervisor(), `while :; do sleep 0.05; done & echo $! > ${file}; exit 4`);
    expect(await ended).toMatchObject({ code: 4 });
    expect(isAlive(Number(read(file)))).toBe(false);
  });

  test("when the supervisor is killed", async () => {
    const one = supervisor();
    const { ended, pid } = run(one, STUBBORN);
    const command = await pid();
    await until("both sides know which process it is", () => one.group);
    process.kill(parentOf(command), "SIGKILL");
    await expect(ended).rejects.toMatchObject({ code: "supervisor-ended" });
    await until("the command has exited", () => !isAlive(command));
  });

  test("when the pipe to the supervisor ends", async () => {
    const one = supervisor();
    const { pid } = run(one, STUBBORN);
    const command = await pid();
    const supervisors = parentOf(command);
    await one.dismiss();
    expect([command, supervisors].filter(isAlive)).toEqual([]);
  });

  test("of a supervisor without a command", async () => {
    const one = supervisor();
    await one.ready;
    await one.dismiss();
  });
});
