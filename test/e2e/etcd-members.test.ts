/**
 * Operates a cluster like etcd: `coterie node --etcd` processes that are managed only with Debian's etcdctl. Members
 * are added, started, promoted and removed, leadership is transferred, and errors name unsupported requests.
 *
 * @module-tag long
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePorts } from "../network/free-ports.ts";
import { type Coterie, endAll, until } from "./cluster-under-test.ts";
import { MembersUnderTest } from "./members-under-test.ts";

const ETCDCTL = "/usr/bin/etcdctl";
const PATIENT = ["--command-timeout=30s", "--dial-timeout=20s"];
let members: MembersUnderTest;
/** The address of each member's etcd API, by member id. */
const doors = new Map<number, string>();

beforeAll(async () => {
  if (!existsSync(ETCDCTL)) throw new Error("not installed: apt-get install etcd-client, which .ci/run does");
  members = await MembersUnderTest.patient(3);
  const ports = await freePorts(members.ids.length);
  for (const id of members.ids) doors.set(id, `127.0.0.1:${ports[id - 1]}`);
  for (const id of members.ids) members.serve(id, "--etcd", doorOf(id));
  for (const id of members.ids) await isListening(id);
});

afterAll(async () => {
  await endAll();
  members?.remove();
});

const doorOf = (id: number): string => doors.get(id) as string;
const all = (): string => [...doors.values()].join(",");

async function isListening(id: number): Promise<void> {
  const member = members.running.get(id) as Coterie;
  await until(`member ${id} runs`, () => member.stdout.includes("listening"), member);
}

interface Said {
  readonly code: number;
  readonly text: string;
}

function etcdctl(at: string, ...words: string[]): Promise<Said> {
  const env = { ...process.env, ETCDCTL_API: "3" };
  return new Promise((resolve) => {
    execFile(ETCDCTL, [`--endpoints=${at}`, ...PATIENT, ...words], { env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : 1, text: `${stdout}${stderr}` }),
    );
  });
}

async function done(at: string, ...words: string[]): Promise<string> {
  const { code, text } = await etcdctl(at, ...words);
  expect(code, `etcdctl ${words.join(" ")}: ${text}`).toBe(0);
  return text.trim();
}

interface Listed {
  /** The id that etcd's clients use, in hexadecimal. */
  readonly number: string;
  readonly id: number;
  readonly isLearner: boolean;
}

async function listed(): Promise<Listed[]> {
  const lines = (await done(all(), "member", "list")).split("\n").map((line) => line.split(", "));
  return lines.map(([number = "", , name, , , isLearner]) => ({
    number,
    id: Number(name),
    isLearner: isLearner === "true",
  }));
}

const numberOf = async (id: number): Promise<string> =>
  (await listed()).find((each) => each.id === id)?.number ?? `member ${id} is not listed`;

/**
 * Finds the leader in the output of `etcdctl endpoint status`. Each line describes one member: endpoint, id, version,
 * size, whether it leads, whether it is a learner.
 */
async function leader(): Promise<number> {
  const find = async (): Promise<number | undefined> => {
    const { code, text } = await etcdctl(all(), "endpoint", "status");
    const line = text.split("\n").find((each) => each.split(", ")[4] === "true");
    return code === 0 ? [...doors].find(([, door]) => line?.startsWith(`${door},`))?.[0] : undefined;
  };
  return until("a member says that it leads", find);
}

/** Adds a member and starts it as described in docs/guide/etcd-api.md. @returns its id */
async function added(...options: string[]): Promise<number> {
  const [peer, admin, door] = (await freePorts(3)) as [number, number, number];
  const before = (await listed()).map(({ id }) => id);
  const text = await done(all(), "member", "add", "another", `--peer-urls=http://127.0.0.1:${peer}`, ...options);
  expect(text).toMatch(/^Member +[0-9a-f]+ added to cluster/);
  const { id } = (await listed()).find((each) => !before.includes(each.id)) as Listed;
  const { members: founders } = members.joinOptions(1) as { members: object };
  const place = { address: `127.0.0.1:${peer}`, admin: `127.0.0.1:${admin}` };
  members.rewrite({ members: { ...founders, [id]: place }, timing: "patient" });
  doors.set(id, `127.0.0.1:${door}`);
  members.serve(id, "--existing", "--etcd", doorOf(id));
  await isListening(id);
  return id;
}

test("endpoints are healthy, and report one state", async () => {
  expect(await done(all(), "put", "greeting", "hello")).toBe("OK");
  for (const door of doors.values()) expect(await done(door, "get", "greeting")).toBe("greeting\nhello");
  const health = await done(all(), "endpoint", "health");
  for (const door of doors.values()) expect(health).toContain(`${door} is healthy: successfully committed proposal`);
  const index = async (): Promise<number> => Number((await done(doorOf(1), "endpoint", "status")).split(", ")[7]);
  const before = await index();
  await done(all(), "put", "greeting", "hello again");
  expect(await index()).toBeGreaterThan(before);
});

test("leadership is moved to another member", async () => {
  const before = await leader();
  const next = members.ids.find((id) => id !== before) as number;
  const [from, to] = [await numberOf(before), await numberOf(next)];
  expect(await done(all(), "move-leader", to)).toBe(`Leadership transferred from ${from} to ${to}`);
  await until(`member ${next} leads`, async () => (await leader()) === next);
  const { code, text } = await etcdctl(doorOf(before), "move-leader", to);
  expect([code, text]).toEqual([1, expect.stringContaining("no leader endpoint given")]);
});

test("a member is added, started and serves; a learner is promoted; the leader is removed, and ends", async () => {
  await done(all(), "put", "before", "1");
  const fourth = await added();
  expect(fourth).toBe(4);
  const votes = async (id: number): Promise<boolean> =>
    (await listed()).some((each) => each.id === id && !each.isLearner);
  await until("member 4 votes", () => votes(4));
  expect(await done(doorOf(4), "get", "before")).toBe("before\n1");
  expect(await done(doorOf(4), "put", "by the fourth", "1")).toBe("OK");

  const learner = await added("--learner");
  expect(learner).toBe(5);
  expect(await votes(5)).toBe(false);
  expect(await done(doorOf(5), "get", "by the fourth")).toBe("by the fourth\n1");
  const promote = async (): Promise<boolean> =>
    (await etcdctl(all(), "member", "promote", await numberOf(5))).text.includes("promoted in cluster");
  await until("member 5 is promoted", promote);
  await until("member 5 votes", () => votes(5));

  const old = await leader();
  const ended = members.running.get(old) as Coterie;
  const number = await numberOf(old);
  doors.delete(old); // Its connections close with it.
  const isOff = async (): Promise<boolean> => {
    await etcdctl(all(), "member", "remove", number);
    const { code, text } = await etcdctl(all(), "member", "list");
    return code === 0 && !text.includes(number);
  };
  await until(`member ${old} is off the list`, isOff);
  const { code, stderr } = await ended.finished;
  expect([code, stderr]).toEqual([1, expect.stringContaining("has been removed")]);
  await until("the others continue", async () => (await etcdctl(all(), "put", "after", "1")).text.includes("OK"));
  for (const door of doors.values()) expect(await done(door, "get", "after")).toBe("after\n1");
  const again = await etcdctl(all(), "member", "remove", number);
  expect([again.code, again.text]).toEqual([1, expect.stringContaining("etcdserver: member not found")]);
});

test("unsupported requests are named", async () => {
  const [door] = doors.values() as Iterable<string> as [string];
  const file = join(members.folder, "a.snapshot");
  for (const [words, method] of [
    [["snapshot", "save", file], "Maintenance/Snapshot"],
    [["endpoint", "hashkv"], "Maintenance/HashKV"],
    [["auth", "enable"], "Auth/AuthEnable"],
    [["user", "list"], "Auth/UserList"],
    [["role", "list"], "Auth/RoleList"],
  ] as const) {
    const { code, text } = await etcdctl(door, ...words);
    expect(code).toBe(1);
    expect(text).toContain(
      `code = Unimplemented desc = The server does not implement the method /etcdserverpb.${method}`,
    );
  }
});

test("there are no alarms, and nothing to defragment", async () => {
  const [door] = doors.values() as Iterable<string> as [string];
  expect(await done(door, "alarm", "list")).toBe("");
  expect(await done(door, "defrag")).toBe(`Finished defragmenting etcd member[${door}]`);
});

test("client requests are counted on /metrics", async () => {
  const id = [...doors.keys()].find((each) => each <= 3) as number;
  await done(doorOf(id), "put", "counted", "1");
  await etcdctl(doorOf(id), "lease", "revoke", "1");
  const page = await (await fetch(`${members.adminOf(id)}/metrics`)).text();
  expect(page).toMatch(/^coterie_etcd_calls_total\{call="KV\/Put"\} [1-9]/m);
  expect(page).toMatch(/^coterie_etcd_refused_total\{reason="lease-not-found"\} [1-9]/m);
  expect(page).toMatch(/^coterie_etcd_watches 0$/m);
});
