/** Checks the JSON gateway on a real socket that gRPC shares: paths, errors, streams, limits, and clients that leave. */
import { request as httpRequest } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { connect } from "node:net";
import { type ChannelCredentials, Client, credentials } from "@grpc/grpc-js";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { type Authority, authority } from "../../../test/network/certificates.ts";
import { PATIENCE } from "../../../test/patience.ts";
import { createLog } from "../../runtime/log.ts";
import { newCounts } from "../../runtime/metrics.ts";
import type { TlsMaterial } from "../../runtime/platform/platform.ts";
import { DoorRoom } from "./door-room.ts";
import { EtcdError } from "./errors.ts";
import { Gateway } from "./gateway.ts";
import { bidirectional, type GrpcDoor, serveGrpc, unary } from "./grpc-door.ts";
import { bytes, message, number } from "./protobuf.ts";

const text = message({ value: bytes(1), times: number(2) });
const base64 = (value: string): string => Buffer.from(value).toString("base64");

let door: GrpcDoor;
afterEach(() => door.close());

/** Serves methods of a test under the names of etcd's. */
async function served(tls: TlsMaterial | null = null) {
  const counts = newCounts().etcd;
  const said: string[] = [];
  const state = { isLed: true, endedStreams: 0, waiting: 0 };
  const repeat = unary(text, text, ({ value, times }) => Promise.resolve({ value: value.repeat(times), times }));
  const refuse = unary(text, text, () => Promise.reject(new EtcdError("leaseNotFound")));
  const wait = unary(text, text, async (_request, signal) => {
    state.waiting += 1;
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    state.waiting -= 1;
    return {};
  });
  const echo = bidirectional(text, text, async ({ requests, send }) => {
    for await (const each of requests) {
      if (each.value === "fail") throw new EtcdError("timedOut");
      await send(each);
    }
  });
  const stay = bidirectional(text, text, async ({ requests, send, signal }) => {
    for await (const each of requests) await send(each);
    await send({ value: "more" });
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    state.endedStreams += 1;
  });
  const services = {
    "etcdserverpb.KV": { Range: repeat, Put: refuse, Txn: wait },
    "etcdserverpb.Watch": { Watch: stay },
    "etcdserverpb.Lease": { LeaseKeepAlive: echo },
  };
  const leadership = {
    require(): void {
      if (!state.isLed) throw new EtcdError("noLeader");
    },
    follow: () => () => {},
  };
  const log = createLog((_level, line) => said.push(line));
  const room = new DoorRoom(counts, log, { connections: 10, calls: 3, unreadBytes: 1_048_576 });
  const gateway = new Gateway({ services, room, leadership, version: "3.4.31" });
  const onHttp1 = gateway.accept.bind(gateway);
  door = await serveGrpc({ host: "127.0.0.1", port: 0 }, { services, room, leadership, tls, onHttp1 });
  return { counts, said, state };
}

interface Answer {
  readonly code: number;
  readonly body: string;
}

async function post(path: string, body: string, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await fetch(`http://127.0.0.1:${door.port}${path}`, { method: "POST", body, headers });
  return { code: response.status, body: await response.text() };
}

const failure = (code: number, text: string): string => JSON.stringify({ error: text, message: text, code });

test("answers a call, also under the path of etcd 3.3, and ignores what follows the first object", async () => {
  const { counts } = await served();
  const request = JSON.stringify({ value: base64("ab"), times: 2 });
  const answer = { code: 200, body: JSON.stringify({ value: base64("abab"), times: "2" }) };
  expect(await post("/v3/kv/range", request)).toEqual(answer);
  expect(await post("/v3beta/kv/range?pretty", `${request} trailing`)).toEqual(answer);
  expect(await post("/v3/kv/range", "")).toEqual({ code: 200, body: "{}" });
  await vi.waitFor(() => expect(counts).toMatchObject({ calls: { "KV/Range": 3 }, open: 0, refused: {} }), PATIENCE);
});

test("reports errors with etcd's codes and texts", async () => {
  const { counts, said } = await served();
  expect(await post("/v3/kv/put", "{}")).toEqual({
    code: 404,
    body: failure(5, "etcdserver: requested lease not found"),
  });
  expect(await post("/v3/kv/range", '{"value":5}')).toEqual({
    code: 400,
    body: failure(3, "expected bytes in base64, got 5"),
  });
  expect(await post("/v3/kv/range", `{"value":"${"A".repeat(5_000_000)}`)).toEqual({
    code: 400,
    body: failure(3, "etcdserver: request is too large"),
  });
  expect(await post("/v3/auth/user/list", "{}")).toEqual({
    code: 501,
    body: failure(12, "unknown method UserList for service etcdserverpb.Auth"),
  });
  expect(await post("/v3/nope", "{}")).toEqual({ code: 404, body: "Not Found\n" });
  expect(counts.refused).toEqual({ "lease-not-found": 1, malformed: 1, "request-too-large": 1 });
  expect(said).toEqual([
    "clients of etcd's API: a call to KV/Range could not be decoded: expected bytes in base64, got 5",
  ]);
});

test("serves the version and whether there is a leader, and requires one if the client asks", async () => {
  const { state } = await served();
  const get = async (path: string): Promise<Answer> => {
    const response = await fetch(`http://127.0.0.1:${door.port}${path}`);
    return { code: response.status, body: await response.text() };
  };
  expect(await get("/version")).toEqual({ code: 200, body: '{"etcdserver":"3.4.31","etcdcluster":"3.4.0"}' });
  expect(await get("/health")).toEqual({ code: 200, body: '{"health":"true"}' });
  expect(await get("/v3/kv/range")).toEqual({ code: 405, body: "Method Not Allowed\n" });
  expect((await post("/version", "")).code).toBe(405);
  state.isLed = false;
  expect(await get("/health")).toEqual({ code: 503, body: '{"health":"false"}' });
  expect((await post("/v3/kv/range", "{}")).code).toBe(200);
  expect(await post("/v3/kv/range", "{}", { "grpc-metadata-hasleader": "true" })).toEqual({
    code: 503,
    body: failure(14, "etcdserver: no leader"),
  });
});

test("refuses requests of web pages, which browsers send from any site", async () => {
  await served();
  expect((await post("/v3/kv/range", "{}", { origin: "http://example.com" })).code).toBe(403);
});

test("answers each object of a stream, and reports an error in it", async () => {
  await served();
  const [a, b, fail] = ["a", "b", "fail"].map((value) => JSON.stringify({ value: base64(value) }));
  expect(await post("/v3/lease/keepalive", `${a}${b}`)).toEqual({
    code: 200,
    body: `{"result":${a}}\n{"result":${b}}\n`,
  });
  const error = { grpc_code: 14, http_code: 503, message: "etcdserver: request timed out" };
  expect(await post("/v3/lease/keepalive", `${a}\n${fail}\n${b}`)).toEqual({
    code: 200,
    body: `{"result":${a}}\n${JSON.stringify({ error })}\n`,
  });
  expect((await post("/v3/lease/keepalive", fail as string)).code).toBe(503);
});

test("a stream answers while its body is open, and stays open after it until the client leaves", async () => {
  const { counts, state } = await served();
  let said = "";
  const request = httpRequest({ port: door.port, host: "127.0.0.1", method: "POST", path: "/v3/watch" });
  request.on("error", () => {});
  request.on("response", (response) => {
    response.on("error", () => {});
    response.on("data", (bytes: Buffer) => (said += bytes.toString()));
  });
  request.write(`{"value":"${base64("ü")}`);
  request.write('"}');
  await vi.waitFor(() => expect(said).toBe(`{"result":{"value":"${base64("ü")}"}}\n`), PATIENCE);
  request.end();
  await vi.waitFor(() => expect(said).toContain(base64("more")), PATIENCE);
  expect([counts.open, state.endedStreams]).toEqual([1, 0]);
  request.destroy();
  await vi.waitFor(() => expect([counts.open, state.endedStreams]).toEqual([0, 1]), PATIENCE);
});

test("a client that leaves gives up its call, and calls beyond the limit are refused", async () => {
  const { counts, state } = await served();
  const leaving = new AbortController();
  const url = `http://127.0.0.1:${door.port}/v3/kv/txn`;
  const waiting = [1, 2, 3].map(() =>
    fetch(url, { method: "POST", body: "{}", signal: leaving.signal }).catch(() => {}),
  );
  await vi.waitFor(() => expect(state.waiting).toBe(3), PATIENCE);
  expect(await post("/v3/kv/range", "{}")).toEqual({ code: 429, body: failure(8, "etcdserver: too many requests") });
  leaving.abort();
  await Promise.all(waiting);
  await vi.waitFor(() => expect([state.waiting, counts.open]).toEqual([0, 0]), PATIENCE);
  expect((await post("/v3/kv/range", "{}")).code).toBe(200);
});

test("gRPC and HTTP/1 share a port, even if the first bytes come one by one", async () => {
  const { counts } = await served();
  const client = new Client(`127.0.0.1:${door.port}`, credentials.createInsecure());
  const identity = (buffer: Buffer): Buffer => buffer;
  const answered = await new Promise<Buffer>((resolve, reject) => {
    const asked = Buffer.from(text.encode({ value: "ab", times: 2 }));
    client.makeUnaryRequest("/etcdserverpb.KV/Range", identity, identity, asked, (error, response) =>
      error === null ? resolve(response as Buffer) : reject(error),
    );
  });
  expect(text.decode(answered)).toEqual({ value: "abab", times: 2 });
  client.close();
  let said = "";
  const socket = connect(door.port, "127.0.0.1");
  socket.setNoDelay(true);
  socket.on("data", (bytes) => (said += bytes.toString()));
  for (const byte of "POST /v3/kv/range HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}") {
    socket.write(byte);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await vi.waitFor(() => expect(said).toMatch(/^HTTP\/1\.1 200 OK/), PATIENCE);
  socket.destroy();
  expect(counts.calls).toEqual({ "KV/Range": 2 });
});

describe("with certificates", () => {
  const names = ["localhost", "127.0.0.1"];
  let ca: Authority;
  let client: TlsMaterial;
  beforeAll(async () => {
    ca = await authority("clients");
    client = await ca.issue("client");
  });

  /** Asks for the version over HTTPS. Resolves with the body, or with the code of the error. */
  const version = (tls: RequestOptions): Promise<string> =>
    new Promise((resolve) => {
      const place = { host: "127.0.0.1", port: door.port, path: "/version", servername: "localhost", agent: false };
      const request = httpsRequest({ ...place, ...tls }, (response) => {
        let said = "";
        response.on("data", (bytes) => (said += String(bytes))).on("end", () => resolve(said));
      });
      request.on("error", ({ code }: NodeJS.ErrnoException) => resolve(String(code)));
      request.end();
    });

  const overGrpc = (secure: ChannelCredentials): Promise<{ value: string }> =>
    new Promise((resolve, reject) => {
      const caller = new Client(`127.0.0.1:${door.port}`, secure, { "grpc.ssl_target_name_override": "localhost" });
      const identity = (buffer: Buffer): Buffer => buffer;
      const asked = Buffer.from(text.encode({ value: "ab", times: 2 }));
      caller.makeUnaryRequest("/etcdserverpb.KV/Range", identity, identity, asked, (error, response) => {
        caller.close();
        if (error === null) resolve(text.decode(response as Buffer));
        else reject(error);
      });
    });
  const pem = Buffer.from;

  test("both protocols accept only callers with a certificate of the authority", async () => {
    await served(await ca.issue(...names));
    const stranger = await (await authority("others")).issue("client");
    expect(await version(client)).toBe('{"etcdserver":"3.4.31","etcdcluster":"3.4.0"}');
    expect(await version({ ca: ca.cert })).not.toContain("etcdserver");
    expect(await version({ ca: ca.cert, cert: stranger.cert, key: stranger.key })).not.toContain("etcdserver");
    const { cert, key } = client;
    expect(await overGrpc(credentials.createSsl(pem(ca.cert), pem(key), pem(cert)))).toEqual({
      value: "abab",
      times: 2,
    });
    await expect(overGrpc(credentials.createSsl(pem(ca.cert)))).rejects.toMatchObject({ code: 14 });
    await expect(overGrpc(credentials.createInsecure())).rejects.toMatchObject({ code: 14 });
  });

  test("new connections use renewed certificates", async () => {
    await served(await ca.issue(...names));
    const next = await authority("next");
    door.renew(await next.issue(...names));
    expect(await version(client)).not.toContain("etcdserver");
    expect(await version(await next.issue("client"))).toContain("etcdserver");
  });
});
