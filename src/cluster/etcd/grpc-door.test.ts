/** Checks invalid or excessive calls of etcd's clients. The member continues, and counts and logs the refusals. */

import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { afterEach, expect, test, vi } from "vitest";
import { PATIENCE } from "../../../test/patience.ts";
import { createLog } from "../../runtime/log.ts";
import { newCounts } from "../../runtime/metrics.ts";
import { type DoorLimits, DoorRoom } from "./door-room.ts";
import { EtcdError } from "./errors.ts";
import { bidirectional, type Duplex, type GrpcDoor, serveGrpc, unary } from "./grpc-door.ts";
import { bytes, message, number } from "./protobuf.ts";

const text = message({ value: bytes(1), times: number(2) });
const PLACE = { host: "127.0.0.1", port: 0 };
const EMPTY = Buffer.alloc(0);
const identity = (buffer: Buffer): Buffer => buffer;

let door: GrpcDoor;
const clients: Client[] = [];
const sockets: Socket[] = [];
const sessions: ClientHttp2Session[] = [];
/** The server closes even with idle connections. */
afterEach(async () => {
  await door.close();
  for (const client of clients.splice(0)) client.close();
  for (const session of sessions.splice(0)) session.destroy();
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** Whether there is a leader. The test sets it. */
class KnownLeader {
  isKnown = true;
  readonly streams = new Set<(error: EtcdError) => void>();
  require(): void {
    if (!this.isKnown) throw new EtcdError("noLeader");
  }
  follow(end: (error: EtcdError) => void): () => void {
    this.streams.add(end);
    return () => void this.streams.delete(end);
  }
}

/**
 * Starts a service with a call that repeats a value, a call that waits until the test lets it return, and three
 * streams.
 */
async function served(limits: Partial<DoorLimits> = {}) {
  const counts = newCounts().etcd;
  const said: string[] = [];
  const log = createLog((_level, line) => said.push(line));
  const waiting: (() => void)[] = [];
  const given = { up: 0 };
  const streams: Pick<Duplex<unknown, { value: string }>, "send">[] = [];
  const repeat = unary(text, text, ({ value, times }) => Promise.resolve({ value: value.repeat(times), times }));
  const wait = unary(text, text, async (request, signal) => {
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
      signal.addEventListener("abort", () => {
        given.up += 1;
        resolve();
      });
    });
    return request;
  });
  const stream = bidirectional(text, text, async (duplex) => {
    streams.push(duplex);
    for await (const _request of duplex.requests);
  });
  const stay = bidirectional(text, text, async ({ requests, signal, send }) => {
    signal.addEventListener("abort", () => ended.push("cancelled"));
    for await (const request of requests) await send(request);
    ended.push("no more requests");
    await send({ value: "more" });
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  });
  const refuse = bidirectional(text, text, async ({ requests }) => {
    for await (const _request of requests) throw new EtcdError("timedOut");
  });
  const leadership = new KnownLeader();
  const ended: string[] = [];
  const room = new DoorRoom(counts, log, { connections: 10, calls: 10, unreadBytes: 1_048_576, ...limits });
  const services = { "test.Text": { Repeat: repeat, Wait: wait, Stream: stream, Stay: stay, Refuse: refuse } };
  door = await serveGrpc(PLACE, { services, room, leadership, onHttp1: (socket) => socket.destroy() });
  return { counts, said, waiting, given, streams, leadership, ended };
}

function client(): Client {
  const one = new Client(`127.0.0.1:${door.port}`, credentials.createInsecure(), {
    "grpc.max_receive_message_length": -1,
    "grpc.use_local_subchannel_pool": 1,
  });
  clients.push(one);
  return one;
}

const call = (by: Client, name: string, request: Buffer, metadata = new Metadata()): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const done = (error: ServiceError | null, response?: Buffer): void => {
      if (error === null) resolve(response as Buffer);
      else reject(error);
    };
    by.makeUnaryRequest(`/test.Text/${name}`, identity, identity, request, metadata, done);
  });

const asked = (value: string, times: number): Buffer => Buffer.from(text.encode({ value, times }));

async function isWell(by = client()): Promise<void> {
  expect(text.decode(await call(by, "Repeat", asked("ab", 2)))).toMatchObject({ value: "abab" });
}

test("refuses malformed messages, counts them, and logs once", async () => {
  const { counts, said } = await served();
  const one = client();
  for (const malformed of [Buffer.from([0x0a]), Buffer.from([0x0a, 0x7f, 1]), Buffer.alloc(1_000, 0xff)])
    await expect(call(one, "Repeat", malformed)).rejects.toMatchObject({ code: 13 });
  await isWell(one);
  expect(counts).toMatchObject({ calls: { "Text/Repeat": 1 }, refused: { malformed: 3 } });
  expect(said).toHaveLength(1);
  expect(said[0]).toMatch(/^clients of etcd's API: a call to Text\/Repeat could not be decoded: expected/);
});

test("refuses a message above 2 MiB before it is read", async () => {
  const { counts } = await served();
  const one = client();
  await expect(call(one, "Repeat", Buffer.alloc(3 << 20))).rejects.toMatchObject({ code: 8 });
  await isWell(one);
  expect(counts.open).toBe(0);
});

test("names a method that is not served", async () => {
  await served();
  await expect(call(client(), "Sing", EMPTY)).rejects.toMatchObject({
    code: 12,
    details: "The server does not implement the method /test.Text/Sing",
  });
});

test("ends a failed stream with the error", async () => {
  const { counts } = await served();
  const one = client();
  const stream = one.makeBidiStreamRequest("/test.Text/Refuse", identity, identity);
  const failed = new Promise((resolve) => stream.on("error", resolve));
  stream.on("data", () => {});
  stream.write(asked("a", 1));
  expect(await failed).toMatchObject({ code: 14, details: "etcdserver: request timed out" });
  await vi.waitFor(() => expect(counts.open).toBe(0), PATIENCE);
  await isWell(one);
});

test("keeps a stream open whose client sends no more requests, until it is cancelled", async () => {
  const { counts, ended } = await served();
  const stream = client().makeBidiStreamRequest("/test.Text/Stay", identity, identity);
  const values: string[] = [];
  stream.on("data", (bytes: Buffer) => values.push(text.decode(bytes).value)).on("error", () => {});
  stream.write(asked("first", 1));
  stream.end();
  await vi.waitFor(() => expect(values).toEqual(["first", "more"]), PATIENCE);
  expect([counts.open, ended]).toEqual([1, ["no more requests"]]);
  stream.cancel();
  await vi.waitFor(() => expect([counts.open, ended]).toEqual([0, ["no more requests", "cancelled"]]), PATIENCE);
});

test("refuses calls that require a leader without one, and ends their streams", async () => {
  const { counts, leadership } = await served();
  const one = client();
  const required = new Metadata();
  required.set("hasleader", "true");
  const open = (metadata: Metadata) => {
    const stream = one.makeBidiStreamRequest("/test.Text/Stay", identity, identity, metadata);
    stream.on("data", () => {});
    return { stream, failed: new Promise((resolve) => stream.on("error", resolve)) };
  };
  const noLeader = { code: 14, details: "etcdserver: no leader" };
  const [first, other] = [open(required), open(new Metadata())];
  await call(one, "Repeat", asked("a", 1), required);
  await vi.waitFor(() => expect([counts.open, leadership.streams.size]).toEqual([2, 1]), PATIENCE);
  leadership.isKnown = false;
  for (const end of leadership.streams) end(new EtcdError("noLeader"));
  expect(await first.failed).toMatchObject(noLeader);
  expect(await open(required).failed).toMatchObject(noLeader);
  await expect(call(one, "Repeat", asked("a", 1), required)).rejects.toMatchObject(noLeader);
  await call(one, "Repeat", asked("a", 1)); // This call does not require a leader.
  await vi.waitFor(() => expect([counts.open, leadership.streams.size]).toEqual([1, 0]), PATIENCE);
  other.stream.cancel();
  leadership.isKnown = true;
  await isWell(one);
});

test("refuses calls above the limit, and accepts more once some are over", async () => {
  const { counts, said, waiting, given } = await served();
  const [one, other] = [client(), client()];
  const calls = Array.from({ length: 10 }, (_, at) => call(at < 5 ? one : other, "Wait", EMPTY));
  await vi.waitFor(() => expect(counts.open).toBe(10), PATIENCE);
  for (let times = 0; times < 3; times++)
    await expect(call(one, "Repeat", EMPTY)).rejects.toMatchObject({
      code: 8,
      details: "etcdserver: too many requests",
    });
  expect(counts.refused).toEqual({ "too-many-requests": 3 });
  expect(said).toEqual([
    "clients of etcd's API: 10 calls are in progress, which is the maximum: further calls are rejected",
  ]);
  for (const go of waiting) go();
  await Promise.all(calls);
  await vi.waitFor(() => expect(counts.open).toBe(0), PATIENCE);
  expect(given.up).toBe(0);
  await isWell(one);
});

test("aborts a call whose client has disconnected, and frees its slot", async () => {
  const { counts, given } = await served();
  const one = client();
  const left = one.makeUnaryRequest("/test.Text/Wait", identity, identity, EMPTY, () => {});
  await vi.waitFor(() => expect(counts.open).toBe(1), PATIENCE);
  left.cancel();
  await vi.waitFor(() => expect([counts.open, given.up]).toEqual([0, 1]), PATIENCE);
});

/** Makes a raw call whose response is not read unless a listener is added. */
function unread(session: ClientHttp2Session, name: string, request: Buffer): ClientHttp2Stream {
  const path = `/test.Text/${name}`;
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.on("error", () => {});
  const head = Buffer.alloc(5);
  head.writeUInt32BE(request.length, 1);
  stream.write(Buffer.concat([head, request]));
  return stream;
}

function byHand(): ClientHttp2Session {
  const session = connectHttp2(`http://127.0.0.1:${door.port}`);
  session.on("error", () => {});
  sessions.push(session);
  return session;
}

test("refuses calls once unread answers take too many bytes", async () => {
  const { counts, said } = await served({ calls: 1_000 });
  const session = byHand();
  for (let times = 0; times < 10; times++) {
    const stream = unread(session, "Repeat", asked("x", 131_072)).end();
    await once(stream, "response"); // The response has begun.
  }
  await vi.waitFor(() => expect(counts.open).toBe(8), PATIENCE);
  expect(counts.refused).toEqual({ "too-many-requests": 2 });
  expect(said).toEqual([expect.stringContaining("1048576 bytes of answers have not been read, which is the maximum")]);
  session.destroy();
  await vi.waitFor(() => expect(counts.open).toBe(0), PATIENCE);
  await isWell();
});

test("sends 256 KiB and a message on an unread stream, and continues with its reader", async () => {
  const { counts, streams } = await served();
  const stream = unread(byHand(), "Stream", EMPTY);
  await vi.waitFor(() => expect(streams).toHaveLength(1), PATIENCE);
  const value = "x".repeat(65_536);
  let sent = 0;
  const sending = Array.from({ length: 100 }, async () => {
    await streams[0]?.send({ value });
    sent += 1;
  });
  const isStill = async (): Promise<boolean> => {
    const before = sent;
    await sleep(200);
    return before === sent;
  };
  await vi.waitFor(async () => expect(await isStill()).toBe(true), PATIENCE);
  expect(sent).toBeLessThan(10);
  let read = 0;
  stream.on("data", (buffer: Buffer) => {
    read += buffer.length;
  });
  await Promise.all(sending);
  await vi.waitFor(() => expect(read).toBeGreaterThan(100 * 65_536), PATIENCE);
  stream.close();
  await vi.waitFor(() => expect(counts.open).toBe(0), PATIENCE);
});

test("closes, counts and logs once the connections above the limit", async () => {
  const { counts, said } = await served({ connections: 3 });
  const open = (): Promise<Socket> =>
    new Promise((resolve) => {
      const socket = connect(door.port, "127.0.0.1", () => resolve(socket));
      socket.on("error", () => {});
      sockets.push(socket);
    });
  for (let times = 0; times < 5; times++) await open();
  await vi.waitFor(() => expect(counts.refused["too-many-connections"]).toBe(2), PATIENCE);
  expect(counts.connected).toBe(3);
  expect(said).toEqual(["clients of etcd's API: 3 connections are open, which is the maximum"]);
  sockets[0]?.destroy();
  await vi.waitFor(() => expect(counts.connected).toBe(2), PATIENCE);
  await isWell();
});

test("ends a connection that is not HTTP/2, and nothing else", async () => {
  const { counts } = await served();
  const socket = connect(door.port, "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n"));
  socket.on("error", () => {});
  sockets.push(socket);
  await new Promise((resolve) => socket.resume().once("close", resolve));
  await isWell();
  expect(counts.calls).toEqual({ "Text/Repeat": 1 });
});

test("names an address that is in use", async () => {
  await served();
  const room = new DoorRoom(
    newCounts().etcd,
    createLog(() => {}),
  );
  const options = { services: {}, room, leadership: new KnownLeader(), onHttp1: () => {} };
  await expect(serveGrpc({ ...PLACE, port: door.port }, options)).rejects.toThrow(
    `cannot listen on 127.0.0.1:${door.port} for etcd's API: the address is in use`,
  );
});
