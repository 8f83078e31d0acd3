import { getEventListeners, once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { breakingProxy } from "../../../test/network/breaking-proxy.ts";
import { authority } from "../../../test/network/certificates.ts";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { freePorts } from "../../../test/network/free-ports.ts";
import { cluster, startAll } from "../../../test/network/joined.ts";
import { PATIENCE } from "../../../test/patience.ts";
import { join } from "../join.ts";
import type { JoinOptions, Member } from "./api.ts";

const closing = closedAfterEach();
const members = { 1: "127.0.0.1:7101", 2: "127.0.0.1:7102" };

test("reaches a member at its address in the list, though it binds another one", async () => {
  const group = closing(await cluster(3));
  const [bound] = (await freePorts(1)) as [number];
  const known = Number(group.members[1]?.split(":")[1]);
  closing(await breakingProxy(known, bound));
  const all = await Promise.all([group.start(1, { listen: `127.0.0.1:${bound}` }), group.start(2), group.start(3)]);
  for (const member of all) await member.ready(); // `ready()` needs only a majority, so check all members below.
  await vi.waitFor(() => expect(all.map((member) => member.status().reachable)).toEqual([3, 3, 3]), PATIENCE);
  expect(all[0]?.status().address).toBe(group.members[1]);
});

describe("join", () => {
  test.each<[object, string]>([
    [{ id: 3, members }, "expected id of join() to be one of 1, 2, got 3"],
    [{ id: 1, members: { 1: "nowhere" } }, "host:port"],
    [{ id: 1, members, listen: "here" }, "expected members.1.listen of join() to be host:port with a port from 1"],
    [
      { id: 1, members, listen: "0.0.0.0:7101" },
      "expected tls of join() to be set, since members.1.listen 0.0.0.0:7101",
    ],
    [
      { id: 1, members: { 1: "10.0.0.1:7100" } },
      "expected tls of join() to be set, since members.1.address 10.0.0.1:7100",
    ],
    [
      { id: 1, members, folder: "." },
      'among id, members, listen, dataDir, cluster, tls, limits, registry, log, admin, multicast, clients, etcd, signal, timing, faultInjector, existing, got "folder"',
    ],
    [
      { id: 1, members, limits: { maxWaiters: 0 } },
      "expected limits.maxWaiters of join() to be a whole number > 0, got 0",
    ],
    [{ id: 1, members, limits: { maxFrameBytes: 1 } }, "limits.maxFrameBytes"],
    [{ id: 1, members, admin: "10.0.0.1:80" }, "a loopback address"],
    [{ id: 1, members, cluster: "" }, "cluster"],
  ])("refuses %j", async (options, why) => {
    await expect(join({ dataDir: "unused", ...options } as JoinOptions)).rejects.toThrow(why);
  });

  test("reports that its address is in use, and leaves nothing open", async () => {
    const [port] = (await freePorts(1)) as [number];
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    const dataDir = mkdtempSync(path(tmpdir(), "coterie-taken-"));
    const joining = join({ id: 1, members: { 1: `127.0.0.1:${port}` }, dataDir });
    await expect(joining).rejects.toMatchObject({ code: "cannot-listen" });
    await new Promise((resolve) => server.close(resolve));
    rmSync(dataDir, { recursive: true });
  });

  test("authenticates members with certificates", async () => {
    const ca = await authority("orders");
    const folder = mkdtempSync(path(tmpdir(), "coterie-certificates-"));
    for (const id of [1, 2]) {
      const { cert, key } = await ca.issue(`node-${id}`);
      writeFileSync(path(folder, `${id}.pem`), cert);
      writeFileSync(path(folder, `${id}.key`), key);
    }
    writeFileSync(path(folder, "ca.pem"), ca.cert);
    const tls = { ca: path(folder, "ca.pem"), cert: path(folder, "{id}.pem"), key: path(folder, "{id}.key") };
    const [first, second] = (await startAll(closing(await cluster(2, { tls })))) as [Member, Member];
    const grant = await first.mutex("account").acquire();
    await grant.release();
    expect((await second.mutex("account").acquire()).token).toBeGreaterThan(grant.token);
    rmSync(folder, { recursive: true });
    await expect(closing(await cluster(1, { tls })).start(1)).rejects.toMatchObject({ code: "cannot-read" });
  });

  test("refuses a folder that another member uses", async () => {
    const it = closing(await cluster(2));
    const folder = mkdtempSync(path(tmpdir(), "coterie-shared-"));
    await it.start(1, { dataDir: folder });
    await expect(it.start(2, { dataDir: folder })).rejects.toThrow(folder);
    await it.close();
    rmSync(folder, { recursive: true });
  });

  test.each([0, 1, 5, 20, 60])("aborted after %i ms leaves its port and folder free", async (afterMs) => {
    const it = closing(await cluster(2));
    const [, port] = (it.members[2] as string).split(":");
    // This peer accepts the connection and stays silent, so joining waits.
    const mute = createServer(() => {}).listen(Number(port), "127.0.0.1");
    await once(mute, "listening");
    const abort = new AbortController();
    const reason = new Error("not wanted any more");
    const joining = it.start(1, { signal: abort.signal, admin: "127.0.0.1:0" });
    setTimeout(() => abort.abort(reason), afterMs);
    await expect(joining).rejects.toBe(reason);
    expect(getEventListeners(abort.signal, "abort")).toEqual([]);
    mute.close();
    await it.start(1);
  });

  test("accepts console as a log, or any logger, and counts repeated lines itself", async () => {
    const lines: [string, string, unknown?][] = [];
    const taking = (level: string) => (text: string, fields?: unknown) => void lines.push([level, text, fields]);
    const log = { info: taking("info"), warn: taking("warn"), error: taking("error") };
    const it = closing(await cluster(1));
    const member = await it.start(1, { log });
    const [, port] = (it.members[1] as string).split(":");
    for (let times = 0; times < 3; times++) {
      const stranger = connect(Number(port), "127.0.0.1")
        .on("error", () => {})
        .resume();
      stranger.write("GET / HTTP/1.1\r\n\r\n");
      await once(stranger, "close");
    }
    expect(lines).toEqual([
      ["warn", expect.stringContaining("refused a connection from 127.0.0.1"), expect.anything()],
    ]);
    expect(lines[0]?.[2]).toMatchObject({ event: "connection-refused", from: "127.0.0.1", reason: "malformed" });
    expect(member.status().state).toBe("joined");
  });

  test("with a different timing is refused, and refuses the others", async () => {
    const it = closing(await cluster(2));
    await it.start(1);
    await it.start(2, { timing: "patient" });
    await vi.waitFor(() => {
      expect(it.lines).toContainEqual(expect.stringMatching(/node 1.*wrong-protocol.*or they use different timing/));
    }, PATIENCE);
    await expect(it.start(3, { timing: "slow" as never })).rejects.toThrow(
      'expected timing of join() to be one of fast, default, patient, got "slow"',
    );
  });

  test("ends when its signal is aborted", async () => {
    const it = closing(await cluster(1));
    const abort = new AbortController();
    const member = await it.start(1, { signal: abort.signal });
    abort.abort();
    expect(member.signal.reason).toMatchObject({ code: "member-left" });
    await member.leave();
    await expect(it.start(1, { signal: abort.signal })).rejects.toThrow("aborted");
  });
});

describe("a member", () => {
  test("shows its status on its admin address", async () => {
    const it = closing(await cluster(1));
    const member = await it.start(1, { admin: "127.0.0.1:0" });
    await member.election("report").lead(() => {});
    const page = await fetch(`${member.admin}/status`);
    expect(await page.json()).toMatchObject({ id: 1, protocol: "services", instances: [{ name: "report" }] });
    expect(await (await fetch(`${member.admin}/metrics`)).text()).toContain("coterie_open_links 0");
    const command = { method: "POST", body: "{}", headers: { "content-type": "application/json" } };
    expect((await fetch(`${member.admin}/command`, command)).status).toBe(400);
  });
});
