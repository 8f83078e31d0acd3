/**
 * Recovers a cluster that has lost its majority permanently, with real processes, their folders, and the documented
 * commands.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connect, join, type Member } from "../../src/index.ts";
import { coterie } from "../commands/run-here.ts";
import { freePorts } from "../network/free-ports.ts";
import { Coterie, until } from "./cluster-under-test.ts";

const IDS = [1, 2, 3];
const folder = mkdtempSync(path(tmpdir(), "coterie-recovery-"));
const file = path(folder, "demo.snapshot");
let ports: readonly number[] = [];

const address = (id: number): string => `127.0.0.1:${ports[id]}`;
const place = (id: number): string => `127.0.0.1:${ports[10 + id]}`;
const url = (id: number): string => `http://${place(id)}`;

function configFor(ids: readonly number[]): string {
  const name = path(folder, `members-${ids.join("-")}.json`);
  const members = Object.fromEntries(ids.map((id) => [id, address(id)]));
  writeFileSync(name, JSON.stringify({ cluster: "demo", dataDir: path(folder, "journal-{id}"), members }));
  return name;
}

beforeAll(async () => {
  ports = await freePorts(20);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("saved, shown and restored: an incomplete file is rejected, and so is a folder in use", async () => {
  const config = configFor([9]);
  const options = { id: 9, cluster: "demo", members: { 9: address(9) }, clients: place(9) };
  const before: Member = await join({ ...options, dataDir: path(folder, "journal-9") });
  const at = ["--endpoints", url(9)];
  await before.map("stock").put("apples", "é".repeat(20_000));
  const token = (await before.mutex("disk").acquire()).token;
  const saved = await coterie("snapshot", "save", file, "--json", ...at);
  expect(saved).toMatchObject({ code: 0, stderr: "" });
  const { revision } = JSON.parse(saved.stdout) as { revision: number };
  expect(revision).toBeGreaterThanOrEqual(token);
  expect((await coterie("snapshot", "show", file)).stdout).toMatch(/^cluster {4}demo\n[\s\S]*maps {7}1 with 1 key\n/);
  expect(JSON.parse((await coterie("snapshot", "show", file, "--json")).stdout)).toEqual({
    cluster: "demo",
    member: 9,
    at: expect.any(Number),
    revision,
    salvaged: null,
    maps: 1,
    keys: 1,
    ...{ counters: 0, otherKeys: 0, queues: 0, items: 0 },
    machines: [],
    sessions: 1,
    leasedKeys: 0,
    grants: 1,
  });

  const bytes = readFileSync(file);
  const broken = path(folder, "broken.snapshot");
  const refused = async (content: Buffer, why: string): Promise<void> => {
    writeFileSync(broken, content);
    const { code, stderr } = await coterie("snapshot", "show", broken);
    expect(code).toBe(2);
    expect(stderr.replaceAll(/\s+/g, " ")).toContain(why);
  };
  await refused(bytes.subarray(0, bytes.length - 9), "its end is missing");
  await refused(
    Buffer.from(bytes.toString().replace("map/stock/", "map/stack/")),
    "it was altered: its digest differs",
  );
  await refused(Buffer.from(bytes.toString().replace('"version":1', '"version":2')), "got version 2");
  await refused(Buffer.from("COTERIE"), "it has no snapshot header");

  const restore = ["snapshot", "restore", file, "--config", config];
  expect(await coterie(...restore)).toMatchObject({ code: 2, stderr: expect.stringContaining("to be empty") });
  const [nobody] = await freePorts(1);
  const kept = bytes.toString();
  const unsaved = await coterie("snapshot", "save", file, "--endpoints", `http://127.0.0.1:${nobody}`);
  expect(unsaved).toMatchObject({ code: 1, stdout: "" });
  expect(readFileSync(file, "utf8")).toBe(kept);
  const second = path(folder, "second.snapshot");
  const inUse = await coterie("snapshot", "save", second, "--from", path(folder, "journal-9"));
  expect(inUse).toMatchObject({ code: 2, stdout: "" });
  expect(inUse.stderr).toContain(`the journal in ${path(folder, "journal-9")} is in use by process ${process.pid}: `);
  expect(existsSync(second)).toBe(false);
  expect(readdirSync(folder).filter((name) => name.includes("part-"))).toEqual([]);
  await before.leave();
  expect(await coterie("snapshot", "save", second, "--from", path(folder, "journal-9"))).toMatchObject({ code: 0 });

  const again = path(folder, "again-{id}");
  expect((await coterie(...restore, "--data", again)).stdout).toContain("start member 9 with it");
  const after = await join({ ...options, dataDir: again });
  expect(await after.map("stock").get("apples")).toBe("é".repeat(20_000));
  expect((await after.mutex("disk").acquire()).token).toBeGreaterThan(token);
  await after.leave();
});

test("Ctrl-C, and a member that disconnects, leave no file", { tags: ["long"] }, async () => {
  let isCut = true;
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-length": 1_000 }).write("half", () => isCut && response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const target = path(folder, "half.snapshot");
  const save = ["snapshot", "save", target, "--endpoints", `http://127.0.0.1:${port}`];
  const halves = (): string[] => readdirSync(folder).filter((name) => name.startsWith("half"));
  try {
    expect(await coterie(...save)).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("not answer"),
    });
    expect(halves()).toEqual([]);
    isCut = false;
    const saving = new Coterie(...save);
    await until("half of it is there", () => halves().some((name) => statSync(path(folder, name)).size === 4), saving);
    saving.signal("SIGINT");
    expect(await saving.finished).toMatchObject({ code: 130, stdout: "" });
    expect(halves()).toEqual([]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

/** The status of running members, shown if a wait times out. */
const standing = (running: ReadonlyMap<number, Coterie>) => ({
  get standing(): string {
    return [...running].map(([id, process]) => `${id}: ${process.standing}`).join("\n");
  },
});

test("two of three are lost for good: a new cluster continues with the data of the third, and rejects a lost member that returns", {
  tags: ["long"],
}, async () => {
  const running = new Map<number, Coterie>();
  const start = (id: number, config: string, ...more: string[]): void =>
    void running.set(id, new Coterie("node", "--config", config, "--id", `${id}`, "--clients", place(id), ...more));
  const end = async (id: number, signal: NodeJS.Signals = "SIGKILL"): Promise<void> => {
    running.get(id)?.signal(signal);
    await running.get(id)?.finished;
  };
  const config = configFor(IDS);
  try {
    for (const id of IDS) start(id, config);
    const client = await connect({ endpoints: IDS.map(url), timeoutMs: 60_000 });
    const map = client.map<number>("numbers");
    for (let number = 1; number <= 50; number++) await map.put(`${number}`, number, { timeoutMs: 60_000 });
    const { token } = await client.mutex("disk").acquire({ timeoutMs: 60_000 });
    await client.close();
    // Once the member has answered a linearizable read, its log has all earlier acknowledged writes. When it stops, it
    // saves its state.
    expect((await coterie("get", "numbers", "50", "--timeout", "60s", "--endpoints", url(2))).stdout).toBe("50\n");
    for (const id of [1, 3]) await end(id);
    await end(2, "SIGTERM");

    const saved = await coterie("snapshot", "save", file, "--from", path(folder, "journal-2"));
    expect(saved).toMatchObject({ code: 0, stdout: expect.stringContaining("of demo") });
    const data = path(folder, "new-{id}");
    expect(await coterie("snapshot", "restore", file, "--config", config, "--data", data)).toMatchObject({ code: 0 });
    expect(IDS.every((id) => existsSync(path(folder, `new-${id}`, "journal")))).toBe(true);

    for (const id of [1, 2]) start(id, config, "--data", data.replace("{id}", `${id}`));
    start(3, config); // Member 3 starts with its old folder.
    const again = await connect({ endpoints: [1, 2].map(url), timeoutMs: 60_000 });
    const numbers = again.map<number>("numbers");
    for (let number = 1; number <= 50; number++)
      expect(await numbers.get(`${number}`, { timeoutMs: 60_000 })).toBe(number);
    const next = await again.mutex("disk").acquire({ timeoutMs: 60_000 });
    expect(next.token).toBeGreaterThan(token);
    await until(
      "member 3 is refused",
      () => running.get(3)?.stderr.includes("restored from a snapshot") === true,
      standing(running),
    );
    await end(3);
    start(3, config, "--data", data.replace("{id}", "3"));
    const third = await connect({ endpoints: [url(3)], timeoutMs: 60_000 });
    expect(await third.map<number>("numbers").get("50", { timeoutMs: 60_000 })).toBe(50);
    await Promise.all([again.close(), third.close()]);
  } finally {
    for (const process of running.values()) process.signal("SIGKILL");
  }
});
