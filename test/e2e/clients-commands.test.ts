/** Checks `coterie get`, `put`, `del`, `watch`, `txn` and `counter` against a member in this process. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { join, type Member } from "../../src/index.ts";
import { coterie } from "../commands/run-here.ts";
import { freePorts } from "../network/free-ports.ts";
import { CLI } from "./cluster-under-test.ts";

const folder = mkdtempSync(path(tmpdir(), "coterie-commands-"));
let member: Member;
let at: readonly string[] = [];

beforeAll(async () => {
  const [own, clients] = await freePorts(2);
  member = await join({
    id: 1,
    members: { 1: `127.0.0.1:${own}` },
    dataDir: path(folder, "data"),
    clients: `127.0.0.1:${clients}`,
  });
  at = ["--endpoints", member.clients as string];
});
afterAll(async () => {
  await member.leave();
  rmSync(folder, { recursive: true, force: true });
});

test("a watch ends once its output has no reader", async () => {
  const [command, ...words] = [process.execPath, CLI, "watch", "read", "--after", "0", ...at];
  const watch = spawn(command, words, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(watch, "exit");
  await member.map("read").put("first", 1);
  const [line] = (await once(watch.stdout, "data")) as [Buffer];
  expect(line.toString()).toMatch(/^\d+ put first 1\n$/);
  watch.stdout.destroy();
  await once(watch.stdout, "close");
  await member.map("read").put("second", 2); // The write makes it notice the closed pipe.
  expect(await ended).toEqual([0, null]);
});

test("listing members without a majority reports that there is none, within the timeout", async () => {
  const ports = await freePorts(3);
  const members = { 1: `127.0.0.1:${ports[0]}`, 2: `127.0.0.1:${ports[1]}` };
  const [left, other] = await Promise.all([
    join({ id: 1, members, dataDir: path(folder, "left"), clients: `127.0.0.1:${ports[2]}` }),
    join({ id: 2, members, dataDir: path(folder, "other") }),
  ]);
  try {
    await left.ready();
    await other.leave();
    const { code, stderr } = await coterie("member", "list", "--timeout", "1s", "--endpoints", left.clients as string);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("majority") as string });
    expect(stderr).not.toContain("does not answer");
  } finally {
    await left.leave();
  }
});

test("a key is put, read, watched and deleted; a failed condition is exit code 1", async () => {
  const first = await coterie("put", "stock", "apples", "3", ...at);
  expect(first).toMatchObject({ code: 0, stderr: "" });
  const revision = Number(first.stdout);
  expect(await coterie("get", "stock", "apples", ...at)).toMatchObject({ code: 0, stdout: "3\n" });
  expect(await coterie("get", "stock", "apples", "--json", ...at)).toMatchObject({
    stdout: `${JSON.stringify({ key: "apples", value: 3, revision })}\n`,
  });
  const again = await coterie("put", "stock", "apples", "many", "--if-revision", "0", ...at);
  expect(again).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringContaining("to be at revision 0, but it is at another one: nothing was written"),
  });
  expect((await coterie("put", "stock", "pears", "many", "--if-revision", "0", ...at)).code).toBe(0);
  expect((await coterie("get", "stock", "--prefix", "", ...at)).stdout).toBe('apples 3\npears "many"\n');
  expect((await coterie("del", "stock", "pears", ...at)).code).toBe(0);
  const gone = (revision = ""): string =>
    `coterie: expected the map "stock" to have the key "pears"${revision}, but it does not: nothing was deleted\n`;
  expect(await coterie("del", "stock", "pears", ...at)).toMatchObject({ code: 1, stderr: gone() });
  expect(await coterie("del", "stock", "pears", "--if-revision", "7", ...at)).toMatchObject({
    code: 1,
    stderr: gone(" with the revision 7"),
  });
  expect((await coterie("get", "stock", "pears", ...at)).code).toBe(1);
  const watched = await coterie("watch", "stock", "--after", "0", "--count", "3", ...at);
  expect(watched.code).toBe(0);
  expect(watched.stdout.replaceAll(/^\d+/gm, "R")).toBe('R put apples 3\nR put pears "many"\nR delete pears\n');
});

test("all keys of a range are read, no matter how many, and a limit that leaves some out is reported", async () => {
  const keys = Array.from({ length: 2_100 }, (_, n) => `key-${String(n).padStart(4, "0")}`);
  const many = member.map("many");
  for (let n = 0; n < keys.length; n += 100) await Promise.all(keys.slice(n, n + 100).map((key) => many.put(key, 1)));
  await many.put("other", 1);
  const { code, stdout, stderr } = await coterie("get", "many", "--prefix", "key-", ...at);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.split("\n")).toEqual([...keys.map((key) => `${key} 1`), ""]);
  const whole = JSON.parse((await coterie("get", "many", "--json", ...at)).stdout) as { entries: object[] };
  expect(whole).toMatchObject({ more: false, revision: expect.any(Number) as number });
  expect(whole.entries).toHaveLength(keys.length + 1);
  const some = await coterie("get", "many", "--limit", "2", ...at);
  expect(some).toMatchObject({ code: 0, stdout: "key-0000 1\nkey-0001 1\n" });
  expect(some.stderr).toBe('coterie: --limit 2 leaves out keys of the map "many": raise or omit it\n');
  expect((await coterie("get", "many", "--prefix", "other", "--limit", "1", ...at)).stderr).toBe("");
});

test("a value too long for a command line is put from a file; exactly one of file and value is allowed", async () => {
  const file = path(folder, "page.json");
  const page = { text: "x".repeat(500_000) };
  writeFileSync(file, JSON.stringify(page));
  expect((await coterie("put", "pages", "index", "--file", file, ...at)).code).toBe(0);
  expect((await coterie("get", "pages", "index", ...at)).stdout).toBe(`${JSON.stringify(page)}\n`);
  for (const wrong of [["1", "--file", file], [], ["--file", `${file}.none`]])
    expect((await coterie("put", "pages", "index", ...wrong, ...at)).code).toBe(2);
});

test("a counter is added to, and a transaction carried out", async () => {
  expect((await coterie("counter", "orders", "--add", "2", ...at)).stdout).toBe("2\n");
  expect((await coterie("counter", "orders", "--json", ...at)).stdout).toBe('{"value":2}\n');
  const file = path(folder, "move.json");
  const put = (value: number) => `[{"put":{"map":"moved","key":"a","value":${value}}}]`;
  writeFileSync(file, `{"if":[{"map":"moved","key":"a","revision":0}],"then":${put(1)},"else":${put(2)}}`);
  expect((await coterie("txn", file, ...at)).code).toBe(0);
  expect((await coterie("txn", file, ...at)).code).toBe(1);
  expect((await coterie("get", "moved", "a", ...at)).stdout).toBe("2\n");
  writeFileSync(file, '{"if":[],"than":[]}');
  expect(await coterie("txn", file, ...at)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("than to be absent"),
  });
});

test("missing or impossible endpoints are rejected with the expected form", async () => {
  expect(await coterie("get", "stock", "apples", "--endpoints", "")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("expected --endpoints"),
  });
  expect((await coterie("get", "stock", "apples", "--endpoints", "tcp://x")).code).toBe(2);
  expect((await coterie("get", "stock", "apples", "--limit", "1", ...at)).code).toBe(2);
  const [free] = await freePorts(1);
  const nobody = await coterie("get", "s", "a", "--endpoints", `http://127.0.0.1:${free}`, "--timeout", "200ms");
  expect(nobody).toMatchObject({ code: 1, stderr: expect.stringContaining("none of") });
});
