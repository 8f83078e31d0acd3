/** Checks the effects that one client, or an unauthenticated one, can have on others. */

import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { WebSocket } from "ws";
import { memberWithClients, type Serving, writeRoles } from "../../../test/network/member-with-clients.ts";
import { PATIENCE } from "../../../test/patience.ts";
import { connect } from "../../client/node.ts";
import { STATE_MACHINE_VERSION } from "../../protocols/service/coordination-service/operations.ts";
import { CLIENT_VERSION } from "./client-words.ts";

const folder = mkdtempSync(path(tmpdir(), "coterie-strangers-"));
const registry = new Registry();
let serving: Serving;

beforeAll(async () => {
  const roles = writeRoles(path(folder, "roles.json"), { read: "read", write: "write" });
  serving = await memberWithClients({ roles }, { registry });
});
afterAll(async () => {
  await serving.member.leave();
  for (const each of [folder, serving.folder]) rmSync(each, { recursive: true, force: true });
});

/** Opens a connection that sends arbitrary messages, and collects all messages that it receives. */
async function stranger(): Promise<{ socket: WebSocket; heard: { type: string; [field: string]: unknown }[] }> {
  const socket = new WebSocket(`${serving.url.replace("http", "ws")}/v1/client`);
  const heard: { type: string }[] = [];
  socket.on("message", (data) => heard.push(JSON.parse((data as Buffer).toString()) as { type: string }));
  await once(socket, "open");
  return { socket, heard };
}

const say = (socket: WebSocket, word: object): void => socket.send(JSON.stringify(word));
const hello = (token: string, client: number | null) => ({ type: "hello", version: CLIENT_VERSION, client, token });

async function transact(body: string): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(`${serving.url}/v1/transactions`, {
    method: "POST",
    body,
    headers: { authorization: "Bearer write", "content-type": "application/json" },
  });
  return { status: answer.status, body: await answer.json() };
}

test("a client cannot redirect other clients", async () => {
  const place = '"map":"coterie/endpoints","key":"66"';
  for (const request of [
    `{"then":[{"put":{${place},"value":"http://127.0.0.1:17666"}}]}`,
    `{"else":[{"delete":{${place}}}]}`,
    `{"if":[{${place},"revision":0}]}`,
  ])
    expect(await transact(request)).toMatchObject({ status: 400, body: { code: "bad-name" } });
  const client = await connect({ endpoints: [serving.url], token: "write" });
  await client.map("m").put("k", 1);
  expect(client.status().endpoints).toEqual([serving.url]);
  await client.close();
});

test("a client cannot exhaust the client ids, or read reserved names", async () => {
  const { socket, heard } = await stranger();
  say(socket, hello("write", null));
  await vi.waitFor(() => expect(heard.map(({ type }) => type)).toContain("welcome"), PATIENCE);
  say(socket, { type: "query", id: 1, query: { type: "readKeys", question: { type: "size" } } });
  const refused = expect.objectContaining({ type: "refused", code: "forbidden" });
  await vi.waitFor(() => expect(heard).toContainEqual(refused), PATIENCE);
  const operations = [
    { type: "begin", ttlMs: 3_000, version: STATE_MACHINE_VERSION },
    { type: "set", name: "coterie/clients", to: Number.MAX_SAFE_INTEGER },
  ];
  const operation = { type: "operations", life: 1, round: 1, acknowledged: 0, first: 1, operations };
  say(socket, { type: "propose", sequence: 1, operation: JSON.stringify(operation) });
  await once(socket, "close");
  expect(heard.at(-1)).toMatchObject({ type: "farewell", code: "bad-message" });
  const client = await connect({ endpoints: [serving.url], token: "write" });
  await client.close();
});

async function propose(...operations: object[]) {
  const { socket, heard } = await stranger();
  say(socket, hello("write", null));
  await vi.waitFor(() => expect(heard.map(({ type }) => type)).toContain("welcome"), PATIENCE);
  const operation = { type: "operations", life: 1, round: 1, acknowledged: 0, first: 1, operations };
  say(socket, { type: "propose", sequence: 1, operation: JSON.stringify(operation) });
  return { socket, heard };
}
// This session outlives any test, even on a busy machine.
const begin = { type: "begin", ttlMs: 60_000, version: STATE_MACHINE_VERSION };

test("an invalid value written by a client ends no member that receives it", async () => {
  const acquire = { mode: "exclusive", permits: 1, capacity: 1, note: "{" };
  const { socket } = await propose(
    begin,
    { type: "enqueue", name: "q", value: "{" },
    { type: "put", map: "m", key: "bad", value: "b***", isLeased: false },
    { type: "acquire", name: "election/e", wait: 1, ...acquire },
  );
  const { member } = serving;
  const watch = member.election("e").watch();
  const item = await member.queue("q").take();
  expect(() => item.item).toThrow(/expected a value written by another program to be JSON, or bytes in base64/);
  await item.done();
  await expect(member.map("m").get("bad")).rejects.toThrow(/to be JSON, or bytes/);
  for await (const { leader, metadata } of watch) {
    if (leader === null) continue;
    expect(metadata).toBeUndefined();
    break;
  }
  expect(member.status().state).toBe("joined");
  socket.close();
});

test("no session outlives its client for longer than a minute", async () => {
  const { socket, heard } = await propose({ ...begin, ttlMs: 3_600_000 });
  await once(socket, "close");
  expect(heard.at(-1)).toMatchObject({ type: "farewell", code: "bad-message" });
});

test("a read-only client cannot take over another's id, and so its lock", async () => {
  const client = await connect({ endpoints: [serving.url], token: "write" });
  const grant = await client.mutex("l").acquire();
  const { socket, heard } = await stranger();
  say(socket, hello("read", client.status().client));
  const welcome = expect.objectContaining({ type: "welcome", role: "read" });
  await vi.waitFor(() => expect(heard).toContainEqual(welcome), PATIENCE);
  await client.map("m").put("k", 2);
  expect(client.status().moves).toBe(0);
  expect(grant.isHeld).toBe(true);
  expect(heard[0]).toMatchObject({ client: 2 ** 40 });
  socket.close();
  await client.close();
});

test("closes and counts a connection without a hello", async () => {
  const refused = async (): Promise<number> =>
    Number(/^coterie_client_refused_total (\d+)$/m.exec(await registry.metrics())?.[1]);
  const before = await refused();
  const { socket, heard } = await stranger();
  await once(socket, "close");
  expect(heard).toEqual([
    { type: "farewell", code: "no-hello", reason: "expected a hello within 3000 ms", isFinal: false },
  ]);
  expect(await refused()).toBe(before + 1);
});

test("keeps an idle client as long as its end answers", async () => {
  const { socket } = await stranger();
  const [pinged] = [once(socket, "ping")];
  say(socket, hello("read", null));
  await pinged;
  expect(socket.readyState).toBe(WebSocket.OPEN);
  socket.close();
});
