/**
 * Checks features that znodes of ZooKeeper do not have by themselves: keys that are created again, changes in segments,
 * and ranges as of one revision.
 * @module-tag long
 */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { issue, makeAuthority } from "../../../src/cluster/certificates.ts";
import type { Store } from "../../../src/engines/store.ts";
import { openZookeeper, zookeeper } from "../../../src/engines/zookeeper.ts";
import { ZookeeperConnection } from "../../../src/engines/zookeeper-connection.ts";
import { join } from "../../../src/index.ts";
import { EngineServer, zookeeperServer, zookeeperServerOverTls } from "./servers.ts";
import { TcpProxy } from "./tcp-proxy.ts";

let server: EngineServer;
const stores: Store[] = [];
beforeAll(async () => {
  server = await EngineServer.start(zookeeperServer);
  // The server listens before it grants sessions, and a member retries until it has one.
  await (await join({ engine: zookeeper({ servers: [address()] }), timeoutMs: 60_000 })).leave();
});
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
});
afterAll(() => server?.remove());

const address = (port = server.port): string => `127.0.0.1:${port}`;
function open(path: string, perSegment?: number, port?: number): Store {
  const store = openZookeeper({ servers: [address(port)], path }, 0, perSegment);
  stores.push(store);
  return store;
}

test("a key that was deleted and created again differs from the previous one, even if its znode has the same version", async () => {
  const near = open("/again");
  const proxy = await TcpProxy.start(server.port);
  const far = open("/again", undefined, proxy.port);
  for (const key of ["g/a", "m/map/b", "c/c"]) {
    const made = (await near.commit([{ key, revision: 0 }], [{ key, value: "near" }])) as number;
    expect((await far.get(key))?.revision).toBe(made);
    const onItsWay = proxy.hold((data) => data.includes("far")); // By the time it sends this, it has read the key.
    const late = far.commit([{ key, revision: made }], [{ key, value: "far" }]);
    await onItsWay;
    await near.commit([{ key, revision: made }], [{ key, value: null }]);
    const again = await near.commit([{ key, revision: 0 }], [{ key, value: "near again" }]);
    proxy.release();
    expect(await late).toBeNull();
    expect(await near.get(key)).toEqual({ key, value: "near again", revision: again });
  }
  await far.close();
  await proxy.close();
});

test("concurrent changes of keys that come and go are each applied to the result of the previous one", async () => {
  const keys = ["g/a", "m/map/b", "c/c"];
  const done = new Map<string, { checked: number; revision: number; isDeleted: boolean }[]>(
    keys.map((key) => [key, []]),
  );
  const work = async (store: Store, at: number): Promise<void> => {
    for (let round = 0; round < 150; round++) {
      const key = keys[(round + at) % keys.length] as string;
      const checked = (await store.get(key))?.revision ?? 0;
      const isDeleted = checked !== 0 && round % 2 === 0;
      const value = isDeleted ? null : `${at} ${round}`;
      const revision = await store.commit([{ key, revision: checked }], [{ key, value }]);
      if (revision !== null) done.get(key)?.push({ checked, revision, isDeleted });
    }
  };
  await Promise.all([0, 1, 2, 3].map((at) => work(open("/many"), at)));
  for (const [key, all] of done) {
    all.sort((a, b) => a.revision - b.revision);
    expect(all.length, key).toBeGreaterThan(20);
    expect(new Set(all.map(({ revision }) => revision)).size).toBe(all.length);
    for (const [at, { checked }] of all.entries()) {
      const before = all[at - 1];
      expect(checked, key).toBe(before === undefined || before.isDeleted ? 0 : before.revision);
    }
  }
});

test("changes are reported over segments, each once and in order, but not those before the last two segments", async () => {
  const writers = [open("/segments", 20), open("/segments", 20)];
  const [first] = writers as [Store];
  const begun = await first.revision();
  const written: { key: string; revision: number }[] = [];
  const write = async (store: Store, at: number): Promise<void> => {
    for (let round = 0; round < 60; round++) {
      const key = `m/${at}/${round}`;
      const revision = await store.commit([{ key, revision: 0 }], [{ key, value: "v" }]);
      written.push({ key, revision: revision as number });
      if (round % 10 !== 0) continue;
      const after = written.map((each) => each.revision).sort((a, b) => b - a)[12] ?? begun;
      const found = await store.changes("m/", after);
      const known = new Set(found?.changes.map((change) => `${change.key} ${change.revision}`));
      const missing = written.filter((each) => each.revision > after && each.revision <= (found?.revision ?? 0));
      expect(missing.filter((each) => !known.has(`${each.key} ${each.revision}`))).toEqual([]);
    }
  };
  await Promise.all(writers.map(write));
  written.sort((a, b) => a.revision - b.revision);
  const after = (written.at(-21) as { revision: number }).revision;
  const found = await first.changes("m/", after);
  expect(found?.changes.map(({ key, revision }) => ({ key, revision }))).toEqual(written.slice(-20));
  expect(await first.changes("m/", begun)).toBeNull();
  expect((await first.changes("m/", await first.revision()))?.changes).toEqual([]);
  const request = { tls: undefined, timeoutMs: 5_000, session: null };
  const connection = await ZookeeperConnection.open({ host: "127.0.0.1", port: server.port }, request);
  const segments = async (): Promise<number> =>
    (await connection.ask({ type: "children", path: "/segments/changes" })).names?.length ?? 0;
  await expect.poll(segments).toBe(2);
  connection.end();
});

test("a range is as of one revision even if entries change while it is read", async () => {
  const [writer, reader] = [open("/ranges"), open("/ranges")] as const;
  const put = (key: string, value: number | null) => ({ key: `m/r/${key}`, value: value === null ? null : `${value}` });
  const between = Array.from({ length: 7 }, (_, at) => `k${at}`); // At most three of them are absent at a time.
  await writer.commit([], [put("a", 100), put("z", 0), ...between.map((key) => put(key, 0))]);
  let isOver = false;
  const moving = (async () => {
    for (let round = 1; !isOver; round++) {
      const middle = between[round % between.length] as string;
      await writer.commit([], [put("a", 100 - round), put(middle, round % 3 === 0 ? null : 0), put("z", round)]);
    }
  })();
  let isMore = 0;
  for (let round = 0; round < 150; round++) {
    const range = { from: "m/r/", to: "m/r0", limit: round % 2 === 0 ? 100 : 3 };
    const { entries, revision, isMore: more } = await reader.range(range);
    if (range.limit === 3) {
      isMore += more ? 1 : 0;
      expect(entries.length).toBeLessThanOrEqual(3);
      continue;
    }
    expect(entries.map(({ key }) => key)).toEqual(entries.map(({ key }) => key).sort());
    expect(entries.reduce((sum, { value }) => sum + Number(value), 0)).toBe(100);
    expect(Math.max(...entries.map((entry) => entry.revision))).toBeLessThanOrEqual(revision);
  }
  isOver = true;
  await moving;
  expect(isMore).toBeGreaterThan(50);
});

test("keys may contain any characters, and are in the order of their code points", async () => {
  const store = open("/names");
  const ends = [
    "",
    ".",
    "..",
    "/",
    "//a",
    "a/b",
    "%2F",
    "\u0001",
    "\u007f",
    "ü",
    "\uf8ff",
    "\uffff",
    "😀",
    "zookeeper",
  ];
  for (const end of ends) await store.commit([], [{ key: `m/n/${end}`, value: `of ${end}` }]);
  const { entries } = await store.range({ from: "m/n/", to: "m/n0", limit: 100 });
  const bytes = (text: string): Buffer => Buffer.from(text, "utf8");
  const sorted = ends.map((end) => `m/n/${end}`).sort((a, b) => Buffer.compare(bytes(a), bytes(b)));
  expect(entries.map(({ key }) => key)).toEqual(sorted);
  expect((await store.get("m/n/.."))?.value).toBe("of ..");
  expect((await store.range({ from: "m/other/", to: "m/other0", limit: 1 })).entries).toEqual([]);
});

test("64 keys change at once or not at all, including keys that are checked to be absent", async () => {
  const store = open("/together");
  const keys = Array.from({ length: 64 }, (_, at) => `m/many/${at}`);
  const absent = keys.map((key) => ({ key, revision: 0 }));
  const writes = keys.map((key) => ({ key, value: "1" }));
  const revision = await store.commit(absent, writes);
  expect(revision).not.toBeNull();
  expect(await store.commit([{ key: "g/none", revision: 0 }, ...absent.slice(1)], writes)).toBeNull();
  const again = keys.map((key) => ({ key, revision: revision as number }));
  expect(
    await store.commit([{ key: "g/none", revision: 0 }, ...again], [{ key: "m/many/0", value: null }]),
  ).toBeGreaterThan(revision as number);
  expect(await store.get("g/none")).toBeNull();
  expect((await store.changes("m/many/", revision as number))?.changes).toMatchObject([
    { key: "m/many/0", value: null },
  ]);
});

test("a session ends without keep-alives, cannot begin again, and has a unique number", async () => {
  const [store, other] = [open("/sessions"), open("/sessions")] as const;
  const [one, two, kept] = [
    await store.openSession(1_000),
    await other.openSession(1_000),
    await store.openSession(1_000),
  ];
  expect(new Set([one, two, kept]).size).toBe(3);
  expect(await other.living([one, two, kept, 7])).toEqual(new Set([one, two, kept]));
  await other.endSession(two);
  expect([await store.living([one, two]), await other.keepAlive(two)]).toEqual([new Set([one]), false]);
  await expect
    .poll(
      async () => {
        expect(await store.keepAlive(kept)).toBe(true);
        return [...(await other.living([one, kept]))];
      },
      { interval: 300 },
    )
    .toEqual([kept]);
  expect(await store.keepAlive(one)).toBe(false);
});

test("errors of the servers are reported with the reason", async () => {
  const engine = zookeeper({ servers: [address()] });
  await expect(join({ engine, sessionMs: 60_000 })).rejects.toThrow(/expected sessionMs to be at most 40000/);
  const member = await join({ engine });
  const value = "x".repeat(600_000);
  await expect(member.map("large").put("key", value)).rejects.toMatchObject({ code: "too-large" });
  await member.map("large").put("key", value.slice(0, 450_000));
  expect(await member.map("large").get("key")).toHaveLength(450_000);
  await member.leave();
});

test("over TLS both sides prove their identity, and a side that cannot gets an error", async () => {
  const now = Date.now();
  const authority = await makeAuthority("ours", now);
  const own = await issue(authority, ["localhost"], 1, now);
  const secure = await EngineServer.start(zookeeperServerOverTls({ ca: authority.cert, own: own.cert + own.key }));
  const joined = (tls: object, timeoutMs: number) =>
    join({ engine: zookeeper({ servers: [address(secure.port)], tls }), timeoutMs });
  const known = { servername: "localhost", ca: authority.cert, cert: own.cert, key: own.key };
  const member = await joined(known, 60_000);
  await member.map("secret").put("key", 1);
  expect(await member.map("secret").get("key")).toBe(1);
  await member.leave();
  const strangers = await makeAuthority("strangers", now);
  const stranger = await issue(strangers, ["localhost"], 1, now);
  /**
   * Returns the reason why a process gets no session. Retries if the server has not checked the certificates in time.
   */
  async function refusal(tls: object, tries = 60): Promise<string> {
    const joining = joined(tls, 1_000);
    const why = await joining.then(
      () => "it has joined",
      (error: unknown) => (error as Error).message,
    );
    return tries > 1 && / within 1000 ms(: no session within 1000 ms.*)?$/.test(why) ? refusal(tls, tries - 1) : why;
  }
  expect(await refusal({ ...known, ca: strangers.cert })).toMatch(/: .*certificate/);
  expect(await refusal({ ...known, cert: stranger.cert, key: stranger.key })).toMatch(/: .*certificate/);
  await secure.remove();
});
