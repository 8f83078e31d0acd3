/**
 * Checks that members can be added and removed while a client writes, with real processes and the documented commands.
 *
 * @module-tag long
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Client, connect } from "../../src/index.ts";
import { coterie } from "../commands/run-here.ts";
import { freePorts } from "../network/free-ports.ts";
import { Coterie, until } from "./cluster-under-test.ts";

const IDS = [1, 2, 3, 4, 5, 6, 7];
const folder = mkdtempSync(path(tmpdir(), "coterie-members-"));
const running = new Map<number, Coterie>();
let ports: readonly number[] = [];
/** The client endpoints that the commands use. */
let at: readonly string[] = [];
let client: Client;

const address = (id: number): string => `127.0.0.1:${ports[id]}`;
const place = (id: number): string => `127.0.0.1:${ports[10 + id]}`;

function configFor(name: string, members: readonly (readonly [number, string])[]): string {
  const file = path(folder, `${name}.json`);
  const dataDir = path(folder, "journal-{id}");
  writeFileSync(file, JSON.stringify({ cluster: "test", dataDir, members: Object.fromEntries(members) }));
  return file;
}

function start(id: number, config: string, ...more: string[]): void {
  const given = ["--config", config, "--id", String(id), "--clients", place(id), ...more];
  running.set(id, new Coterie("node", ...given));
}

async function stop(id: number, signal: NodeJS.Signals): Promise<void> {
  const process = running.get(id) as Coterie;
  process.signal(signal);
  await process.finished;
}

let lastListed = "";
async function listed(): Promise<string[]> {
  const { stdout, stderr } = await coterie("member", "list", "--json", ...at);
  lastListed = `${stdout}${stderr}`;
  const { members } = JSON.parse(stdout || '{"members":[]}') as { members: { id: number; role: string }[] };
  return members.map(({ id, role }) => `${id} ${role}`);
}

/** The status of all members, shown if a wait times out. */
const group = {
  get standing(): string {
    return `the list is ${lastListed}; ${[...running].map(([id, process]) => `${id}: ${process.standing}`).join("\n")}`;
  },
};

const untilListed = (wanted: readonly string[]): Promise<unknown> =>
  until(`the members are ${wanted.join(", ")}`, async () => (await listed()).join() === wanted.join(), group);

beforeAll(async () => {
  ports = await freePorts(20);
  at = ["--timeout", "60s", "--endpoints", IDS.map((id) => `http://${place(id)}`).join(",")];
  const founders = configFor(
    "founders",
    [1, 2, 3].map((id) => [id, address(id)] as const),
  );
  for (const id of [1, 2, 3]) start(id, founders);
  client = await connect({ endpoints: IDS.map((id) => `http://${place(id)}`), timeoutMs: 60_000 });
});
afterAll(async () => {
  await client.close();
  for (const process of running.values()) process.signal("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

test("a fourth is added, the first removed, a dead one replaced and one moved, while a client writes", async () => {
  const map = client.map<number>("numbers");
  let last = 0;
  let isOver = false;
  const writing = (async () => {
    while (!isOver) {
      await map.put("last", last + 1, { timeoutMs: 60_000 });
      last += 1;
    }
  })();
  writing.catch(() => {}); // It is awaited below unless the test fails earlier.

  const later = configFor(
    "later",
    [2, 3, 4].map((id) => [id, address(id)] as const),
  );
  const added = await coterie("member", "add", "4", address(4), ...at);
  expect(added).toMatchObject({ code: 0, stdout: expect.stringContaining("start it with an empty folder") });
  start(4, later, "--existing");
  await untilListed(["1 voter", "2 voter", "3 voter", "4 voter"]);

  expect(await coterie("member", "remove", "1", "--wait", ...at)).toMatchObject({ code: 0, stderr: "" });
  await untilListed(["2 voter", "3 voter", "4 voter"]);
  const removed = await (running.get(1) as Coterie).finished;
  expect(removed).toMatchObject({ code: 1, stderr: expect.stringContaining("has been removed from the cluster") });
  start(1, path(folder, "founders.json"));
  expect(await (running.get(1) as Coterie).finished).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("ids are not reused"),
  });

  await stop(3, "SIGKILL");
  expect((await coterie("member", "add", "5", address(5), "--replaces", "3", ...at)).code).toBe(0);
  start(
    5,
    configFor(
      "last",
      [2, 4, 5].map((id) => [id, address(id)] as const),
    ),
    "--existing",
  );
  await untilListed(["2 voter", "4 voter", "5 voter"]);

  await stop(4, "SIGTERM");
  const moved = `127.0.0.1:${ports[9]}`;
  expect((await coterie("member", "move", "4", moved, ...at)).code).toBe(0);
  start(
    4,
    configFor("moved", [
      [2, address(2)],
      [4, moved],
      [5, address(5)],
    ]),
  );
  expect((await coterie("transfer", "4", ...at)).stdout).toBe("member 4 leads\n");

  const before = last;
  await until("the client continues to write", () => last > before);
  isOver = true;
  await writing;
  expect(await map.get("last")).toBe(last);
});

test("one command adds two members and removes one", async () => {
  const given = ["--add", `6=${address(6)}`, "--learner", `7=${address(7)}`, "--remove", "2"];
  expect(await coterie("member", "change", ...given, ...at)).toMatchObject({
    ...{ code: 0, stderr: "" },
    stdout: "changed: add 6, add 7, remove 2\n",
  });
  const config = configFor("several", [
    [4, `127.0.0.1:${ports[9]}`],
    ...[5, 6, 7].map((id) => [id, address(id)] as const),
  ]);
  for (const id of [6, 7]) start(id, config, "--existing");
  await untilListed(["4 voter", "5 voter", "6 voter", "7 learner"]);
  expect(await (running.get(2) as Coterie).finished).toMatchObject({
    stderr: expect.stringContaining("has been removed from the cluster"),
  });
});

test("an impossible change is rejected in a sentence", async () => {
  expect(await coterie("member", "remove", "9", ...at)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("expected one of the members 4, 5, 6, 7, got 9"),
  });
  expect(await coterie("member", "add", "1", address(1), ...at)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("member 1 has been removed, and ids cannot be reused"),
  });
  expect(await coterie("member", "move", "4", "nowhere", ...at)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("host:port"),
  });
  expect(await coterie("member", "change", "--add", "8", ...at)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("an id and an address, such as 4=10.0.0.4:7100"),
  });
  expect(await coterie("member", "change", "--remove", "4", "9", ...at)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("expected one of the members 4, 5, 6, 7, got 9"),
  });
  expect(await coterie("member", "change", ...at)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("expected at least one of --add, --learner, --promote, --remove"),
  });
});
