/** `coterie lock` and `coterie elect` through members that run already: what is left when either of the two processes ends. */
import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Coterie, coterie, endAll, isAlive, until } from "./cluster-under-test.ts";
import { disorder, MembersUnderTest } from "./members-under-test.ts";

let members: MembersUnderTest;
beforeEach(async () => {
  members = await MembersUnderTest.patient(3);
});
afterEach(async () => {
  await endAll();
  members.remove();
});

/** The exit code where a lock was lost. */
const LOST = 76;

const shell = (script: string): string[] => ["sh", "-c", script];

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** The member through which the witness of this number goes has it: `witness` calls itself so. */
const client = (id: number, words: string, ms?: number): Coterie => members.through(id, words, members.witness(id, ms));

/** A command that heeds no signal; it says its pid in a file. */
async function stubborn(id: number, words: string): Promise<{ run: Coterie; pid: number }> {
  const file = join(mkdtempSync(join(members.folder, "run-")), "pid");
  const run = members.through(
    id,
    words,
    shell(`trap '' TERM INT HUP; echo $$ > ${file}; while :; do sleep 0.05; done`),
  );
  return { run, pid: Number(await until("the command runs", () => read(file), run)) };
}

/** Whether somebody waits for the lock at that member. */
async function isWaiting(id: number, lock: string): Promise<boolean> {
  const response = await fetch(`${members.adminOf(id)}/status`);
  const { instances } = (await response.json()) as { instances: { name: string; waiting: number }[] };
  return instances.some(({ name, waiting }) => name === lock && waiting > 0);
}

describe("coterie lock", () => {
  test("hands on the command's output and exit code, and the lock to the next at once", async () => {
    await members.serveAll();
    const tokens: number[] = [];
    for (const id of [1, 2, 1]) {
      const { stdout, ...finished } = await members.through(id, "lock x", shell("echo $COTERIE_TOKEN; exit 3"))
        .finished;
      expect(finished).toEqual({ code: 3, signal: null, stderr: "" });
      tokens.push(Number(stdout));
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  });

  test("runs one command at a time, through one member and through others, with growing tokens", {
    tags: ["long"],
  }, async () => {
    await members.serveAll();
    const runs = [1, 1, 2, 2, 3].map((id) => client(id, "lock x", 200));
    const codes = await Promise.all(runs.map(async ({ finished }) => (await finished).code));
    expect(codes).toEqual(runs.map(() => 0));
    expect(members.sightings.filter(({ what }) => what === "begin")).toHaveLength(runs.length);
    expect(disorder(members.sightings)).toEqual([]);
  });

  test("is killed: its command too, and the next has the lock when the last deadline has passed", {
    tags: ["long"],
  }, async () => {
    await members.serveAll();
    const first = client(1, "lock x");
    const { token } = await members.successor();
    const second = client(2, "lock x", 200);
    first.signal("SIGKILL");
    await members.successor(token);
    expect((await second.finished).code).toBe(0);
    expect(disorder(members.sightings)).toEqual([]);
  });

  test.each(["SIGKILL", "SIGTERM", "SIGSTOP"] as const)(
    "ends with 76 when its member gets %s",
    { tags: ["long"] },
    async (signal) => {
      await members.serveAll();
      const { run, pid } = await stubborn(1, "lock x");
      members.running.get(1)?.signal(signal);
      const { code, stderr } = await run.finished;
      expect({ code, isAlive: isAlive(pid) }).toEqual({ code: LOST, isAlive: false });
      expect(stderr).toContain("the lock x was lost, and the command stopped");
      expect((await members.through(2, "lock x", shell("exit 5")).finished).code).toBe(5);
    },
  );

  test("whose member ends makes room for no second command while the first one runs", { tags: ["long"] }, async () => {
    await members.serveAll();
    const first = client(1, "lock x");
    const { token } = await members.successor();
    const second = client(2, "lock x", 500);
    await until("it waits", () => isWaiting(2, "x"), second);
    members.running.get(1)?.signal("SIGTERM");
    await members.successor(token);
    await Promise.all([first.finished, second.finished]);
    expect(disorder(members.sightings)).toEqual([]);
  });

  test("that stands still loses the lock, and another gets it", { tags: ["long"] }, async () => {
    await members.serveAll();
    const { run, pid } = await stubborn(1, "lock x");
    run.signal("SIGSTOP");
    await until("the command is dead", () => !isAlive(pid), run);
    expect((await members.through(2, "lock x", shell("exit 5")).finished).code).toBe(5);
    run.signal("SIGCONT");
    expect((await run.finished).code).toBe(LOST);
  });

  test("75: the lock was not to be had in time; a signal ends the wait", { tags: ["long"] }, async () => {
    await members.serveAll();
    const { run, pid } = await stubborn(1, "lock x");
    const late = await members.through(2, "lock x --timeout 300ms", shell("echo ran")).finished;
    expect(late).toMatchObject({ code: 75, stdout: "", stderr: expect.stringContaining("300 ms") as string });
    const waiting = members.through(3, "lock x", shell("echo ran"));
    await until("it waits", () => isWaiting(3, "x"), waiting);
    waiting.signal("SIGTERM");
    expect(await waiting.finished).toMatchObject({ code: 143, stdout: "" });
    expect(isAlive(pid)).toBe(true);
    run.signal("SIGKILL");
  });

  test("says for what it waits, where a majority is missing", { tags: ["long"] }, async () => {
    const alone = members.serve(1);
    await until("the member runs", () => alone.stdout.includes("listening"), alone);
    const run = members.through(1, "lock x", shell("echo ran"));
    await until("it says so", () => run.stderr.includes("1 of 3 can be heard of"), run);
    run.signal("SIGTERM");
    expect((await run.finished).code).toBe(143);
  });
});

describe("coterie elect", () => {
  test("has one command running, whichever process is killed, with growing tokens", { tags: ["long"] }, async () => {
    await members.serveAll();
    const runs = new Map([1, 2, 3].map((id) => [id, client(id, "elect x")]));
    const first = await members.successor();
    runs.get(first.member)?.signal("SIGKILL");
    const second = await members.successor(first.token);
    members.running.get(second.member)?.signal("SIGKILL"); // The member, not the one that goes through it.
    await members.successor(second.token);
    expect((await runs.get(second.member)?.finished)?.code).toBe(1);
    expect(disorder(members.sightings)).toEqual([]);
  });

  test("takes turns where several go through one member", async () => {
    await members.serveAll();
    const runs = [client(1, "elect x", 200), client(1, "elect x", 200)];
    const codes = await Promise.all(runs.map(async ({ finished }) => (await finished).code));
    expect(codes).toEqual([0, 0]);
    expect(disorder(members.sightings)).toEqual([]);
  });
});

test("coterie status says who serves, and what is held by whom", async () => {
  await members.serveAll();
  const { pid } = await stubborn(2, "lock orders");
  const status = async (...options: string[]): Promise<string> => {
    const { code, stdout } = await coterie("status", "--config", members.config, ...options);
    return code === 0 ? stdout : ""; // Not every member has heard of the leader yet.
  };
  type Status = { nodes: { leader: number }[]; instances: object[] };
  const found = await until("the members agree, and know the holder", async () => {
    const answer = JSON.parse((await status("--json")) || '{"instances":[]}') as Status;
    return answer.instances.length > 0 ? answer : null;
  });
  expect(found.nodes.map(({ leader }) => leader)).toEqual(Array(3).fill(found.nodes[0]?.leader));
  expect(found.instances).toEqual([
    {
      kind: "mutex",
      name: "orders",
      holder: 2,
      token: expect.any(Number) as number,
      waiting: 0,
    },
  ]);
  const words = await until("the members agree", () => status());
  expect(words).toMatch(/^NODE +PID +STATE +LEADER +MAJORITY\n1 +\d+ +running +\d +yes\n/);
  expect(words).toMatch(/\nKIND +NAME +HOLDER +TOKEN +WAITING\nlock +orders +2 +\d+ +0\n$/);
  expect(isAlive(pid)).toBe(true);
});

test("coterie status says that nobody answers", async () => {
  const { code, stdout, stderr } = await coterie("status", "--config", members.config);
  expect({ code, stderr }).toEqual({ code: 1, stderr: "coterie: no member answers: is the cluster running?\n" });
  expect(stdout).toContain("no answer");
});

test("is refused where it cannot be", async () => {
  const sentences = async (...words: string[]) => {
    const { code, stderr } = await coterie(...words, "--", "true");
    return { code, stderr };
  };
  const member = members.adminOf(1);
  expect(await sentences("lock", "x", "--member", member, "--id", "1")).toEqual({
    code: 2,
    stderr: "coterie: expected --member or --id, got both: a member that runs has its own\n",
  });
  expect(await sentences("lock", "x", "--member", "10.0.0.1")).toEqual({
    code: 2,
    stderr: 'coterie: expected --member to be a URL such as http://127.0.0.1:7501, got "10.0.0.1"\n',
  });
  expect(await sentences("lock", "x", "--member", member)).toEqual({
    code: 1,
    stderr: `coterie: the member at ${member} does not answer: ECONNREFUSED\n`,
  });
});
