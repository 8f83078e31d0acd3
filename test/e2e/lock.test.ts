/**
 * Checks `coterie lock` on real processes: its exit code, which processes receive signals, and which processes remain
 * afterwards.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { CLI, coterie, endAll, isAlive, parentOf, until } from "./cluster-under-test.ts";
import { disorder, MembersUnderTest } from "./members-under-test.ts";

let members: MembersUnderTest;
afterEach(async () => {
  await endAll();
  members?.remove();
});

/** Creates a cluster of this many members, and starts all of them or only those listed. */
async function cluster(count: number, ...running: number[]): Promise<void> {
  members = await MembersUnderTest.patient(count);
  await members.serveClients(running.length === 0 ? members.ids : running);
}
const alone = (): Promise<void> => cluster(1);

const shell = (script: string): string[] => ["sh", "-c", script];
/** A shell script. At `READY` it writes its pid to a file, to report that it runs. */
const STUBBORN = "trap '' TERM INT HUP; READY; while :; do sleep 0.05; done";

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** Starts a script and waits until it is ready. */
async function runningScript(words: string, script: string) {
  const file = join(members.folder, "pid");
  const run = members.start(1, words, shell(script.replace("READY", () => `echo $$ > ${file}`)));
  const pid = Number(await until("the command runs", () => read(file), run));
  return { run, pid };
}

describe("the exit code", () => {
  const handedOn = async (script: string, code: number): Promise<void> => {
    await alone();
    const { stdout, ...finished } = await members.start(1, "lock x", shell(`echo said; ${script}`)).finished;
    expect(finished).toEqual({ code, signal: null, stderr: "" });
    expect(stdout).toBe("said\n");
  };
  test("of the command is passed on: exit 3", () => handedOn("exit 3", 3));
  test.each([
    ["exit 0", 0],
    ["kill -TERM $$", 143],
    ["kill -KILL $$", 137],
  ])("of the command is passed on: %s", { tags: ["long"] }, handedOn);

  test("127: there is no such command", async () => {
    await alone();
    expect(await members.start(1, "lock x", ["no-such-command"]).finished).toMatchObject({
      code: 127,
      stderr: "coterie: cannot run no-such-command: there is no such command (ENOENT)\n",
    });
  });

  test("126: it cannot be executed", async () => {
    await alone();
    expect(await members.start(1, "lock x", [members.folder]).finished).toMatchObject({
      code: 126,
      stderr: `coterie: cannot run ${members.folder}: it cannot be executed (EACCES)\n`,
    });
  });

  test("75: the lock could not be acquired in time, and nothing has run", async () => {
    await cluster(3, 2); // One of three is not a majority.
    const { code, stdout } = await members.start(2, "lock x --timeout 500ms", shell("echo ran")).finished;
    expect({ code, stdout }).toEqual({ code: 75, stdout: "" });
  });

  test("76: the lock was lost because this process was paused, and the command was stopped", async () => {
    await alone();
    const { run, pid } = await runningScript("lock x", STUBBORN);
    run.signal("SIGSTOP");
    await until("the command has exited", () => !isAlive(pid), run);
    run.signal("SIGCONT");
    expect(await run.finished).toMatchObject({
      code: 76,
      stderr: "coterie: the lock x was lost, and the command was stopped\n",
    });
  });
});

describe("signals", () => {
  const isPassedOn = async (signal: NodeJS.Signals, code: number): Promise<void> => {
    await alone();
    const ready = join(members.folder, "ready");
    const script = `fs.writeFileSync("${ready}", "yes"); setInterval(() => {}, 1_000);`; // A shell may delay a signal.
    const run = members.start(1, "lock x", [process.execPath, "-e", script]);
    await until("the command runs", () => read(ready), run);
    run.signal(signal);
    expect(await run.finished).toMatchObject({ code, stderr: "" });
  };
  test("SIGTERM is passed on to the command", () => isPassedOn("SIGTERM", 143));
  test.each([
    ["SIGINT", 130],
    ["SIGHUP", 129],
  ] as const)("%s is passed on to the command", { tags: ["long"] }, isPassedOn);

  test("a command may continue after a signal; a second Ctrl-C kills it", async () => {
    await alone();
    const heard = join(members.folder, "heard");
    const listening = ["INT", "HUP"].map((name) => `trap 'echo ${name} >> ${heard}' ${name}`).join("; ");
    const { run, pid } = await runningScript("lock x", `${listening}; READY; while :; do sleep 0.05; done`);
    for (const name of ["INT", "HUP"] as const) {
      run.signal(`SIG${name}`);
      // Two pending signals may be merged.
      await until(`it receives SIG${name}`, () => read(heard).includes(name), run);
    }
    expect(isAlive(pid)).toBe(true);
    run.signal("SIGINT");
    expect(await run.finished).toMatchObject({ code: 137 });
  });

  test("a client that still waits for the lock ends at once", { tags: ["long"] }, async () => {
    await cluster(3, 1);
    const run = members.start(1, "lock x", shell("echo ran"));
    await until("it reports the lock it waits for", () => run.stderr.includes("waiting for the lock x"), run);
    run.signal("SIGTERM");
    expect(await run.finished).toMatchObject({ code: 143, stdout: "" });
  });
});

describe("no process outlives it", () => {
  test("a command whose `coterie` was killed", async () => {
    await alone();
    const { run, pid } = await runningScript("lock x", STUBBORN);
    const supervisor = parentOf(pid);
    run.signal("SIGKILL");
    await until("both have exited", () => !isAlive(pid) && !isAlive(supervisor));
  });

  test("background processes of the command", async () => {
    await alone();
    const file = join(members.folder, "left");
    const run = members.start(1, "lock x", shell(`sleep 600 & echo $! > ${file}; exit 5`));
    expect(await run.finished).toMatchObject({ code: 5 });
    expect(isAlive(Number(read(file)))).toBe(false);
  });
});

test("standard input belongs to the command", async () => {
  await alone();
  const child = spawn(process.execPath, [CLI, "lock", "x", "--endpoints", members.endpointOf(1), "--", "cat"]);
  child.stdin.end("to the command");
  let text = "";
  for await (const piece of child.stdout) text += String(piece);
  if (child.exitCode === null) await once(child, "exit");
  expect({ text, code: child.exitCode }).toEqual({ text: "to the command", code: 0 });
});

test("two clients acquire the lock repeatedly: one command at a time, with growing tokens", {
  tags: ["long"],
}, async () => {
  await cluster(3);
  const endings = await Promise.all(
    [1, 2].map(async (id) => {
      const all: { code: number | null; stderr: string }[] = [];
      for (let entry = 0; entry < 2; entry += 1)
        all.push(await members.start(id, "lock x", members.witness(id, 200)).finished);
      return all;
    }),
  );
  expect(endings.flat().filter(({ code }) => code !== 0)).toEqual([]);
  expect(members.sightings.filter(({ what }) => what === "begin")).toHaveLength(4);
  expect(disorder(members.sightings)).toEqual([]);
});

test("a client is killed: its command, too, and the next acquires the lock", { tags: ["long"] }, async () => {
  await cluster(3);
  const first = members.start(1, "lock x");
  const { token } = await members.successor();
  const second = members.start(2, "lock x", members.witness(2, 200));
  first.signal("SIGKILL");
  await members.successor(token);
  expect((await second.finished).code).toBe(0);
  expect(disorder(members.sightings)).toEqual([]);
});

test("76: the only member that the client knows is paused", { tags: ["long"] }, async () => {
  await alone();
  const { run, pid } = await runningScript("lock x", STUBBORN);
  members.running.get(1)?.signal("SIGSTOP");
  expect(await run.finished).toMatchObject({ code: 76 });
  expect(isAlive(pid)).toBe(false);
});

test("coterie status reports the leader of the log", async () => {
  await cluster(3);
  const text = await until("the members agree", async () => {
    const { code, stdout } = await coterie("status", "--config", members.config);
    return code === 0 ? stdout : ""; // Some members may not know the leader yet.
  });
  expect(text).toMatch(/^NODE +PID +STATE +LEADER +MAJORITY\n1 +\d+ +running +\d +yes\n/);
  const { nodes } = JSON.parse((await coterie("status", "--config", members.config, "--json")).stdout) as {
    nodes: { leader: number }[];
  };
  expect(nodes.map(({ leader }) => leader)).toEqual(Array(3).fill(nodes[0]?.leader));
});

test("coterie status reports that no member answers", async () => {
  members = await MembersUnderTest.patient(3);
  const { code, stdout, stderr } = await coterie("status", "--config", members.config);
  expect({ code, stderr }).toEqual({ code: 1, stderr: "coterie: no member answers: is the cluster running?\n" });
  expect(stdout).toContain("no answer");
});

test.each([
  ["lock", "missing required argument 'name'"],
  ["elect x", "missing required argument 'command'"],
  [
    "lock x --endpoints , -- true",
    'expected --endpoints to be URLs of members, such as http://127.0.0.1:7300, got ","',
  ],
  ["lock x --endpoints ftp://a -- true", "ftp://a"],
  ["lock x --timeout 5 -- true", 'expected --timeout to be a time such as 250ms, 5s or 2m, got "5"'],
])("rejects coterie %s", async (words, sentence) => {
  const { code, stdout, stderr } = await coterie(...words.split(" "));
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(sentence);
});
