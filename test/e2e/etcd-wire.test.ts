/**
 * Makes the same calls over gRPC to a member and to etcd itself. Answers, errors and the order of messages on streams
 * must be the same.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { Client, type ClientDuplexStream, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { EtcdError, type EtcdErrorName, errorNames } from "../../src/cluster/etcd/errors.ts";
import * as of from "../../src/cluster/etcd/messages.ts";
import type { Message } from "../../src/cluster/etcd/protobuf.ts";
import { join, type Member } from "../../src/index.ts";
import { EngineServer, etcdServer } from "../engines/real/servers.ts";
import { freePorts } from "../network/free-ports.ts";
import { PATIENCE } from "../patience.ts";

const folder = mkdtempSync(path(tmpdir(), "coterie-etcd-wire-"));
let member: Member;
let etcd: EngineServer;
const sides: { ours: Wire; theirs: Wire } = {} as never;
/** The revision at which the tests begin, on both sides. */
let base: number;

beforeAll(async () => {
  const [address, port] = await freePorts(2);
  member = await join({
    id: 1,
    members: { 1: `127.0.0.1:${address}` },
    dataDir: folder,
    etcd: `127.0.0.1:${port}`,
    timing: "patient",
  });
  await member.ready();
  etcd = await EngineServer.start(etcdServer);
  sides.ours = new Wire(`127.0.0.1:${port}`);
  sides.theirs = new Wire(`127.0.0.1:${etcd.port}`);
  base = await levelled();
});

afterAll(async () => {
  for (const side of Object.values(sides)) side.close();
  await Promise.all([member?.leave(), etcd?.remove()]);
  rmSync(folder, { recursive: true, force: true });
});

const identity = (bytes: Buffer): Buffer => bytes;
type Value = Record<string, unknown>;

/** A client that sends arbitrary messages and shows all responses. */
class Wire {
  readonly #client: Client;
  constructor(at: string) {
    this.#client = new Client(at, credentials.createInsecure(), { "grpc.max_receive_message_length": -1 });
  }

  close(): void {
    this.#client.close();
  }

  /** @returns the response, or the error's code and text */
  call(method: string, request: Message<unknown>, response: Message<unknown>, value: object): Promise<Value> {
    const bytes = Buffer.from(request.encode(value));
    return new Promise((resolve) => {
      const done = (error: ServiceError | null, answer?: Buffer): void =>
        resolve(
          error === null ? shown(response.decode(answer as Buffer)) : { code: error.code, details: error.details },
        );
      this.#client.makeUnaryRequest(`/etcdserverpb.${method}`, identity, identity, bytes, done);
    });
  }

  watch(metadata: Record<string, string> = {}): Stream {
    return this.#stream("Watch/Watch", of.watchRequest, of.watchResponse, metadata);
  }

  keepAlive(metadata: Record<string, string> = {}): Stream {
    return this.#stream("Lease/LeaseKeepAlive", of.leaseRequest, of.leaseKeepAliveResponse, metadata);
  }

  #stream(
    method: string,
    request: Message<unknown>,
    response: Message<unknown>,
    metadata: Record<string, string>,
  ): Stream {
    const given = new Metadata();
    for (const [name, value] of Object.entries(metadata)) given.set(name, value);
    const call = this.#client.makeBidiStreamRequest(`/etcdserverpb.${method}`, identity, identity, given);
    return new Stream(call, request, response);
  }
}

class Stream {
  readonly messages: Value[] = [];
  #wake = (): void => {};
  readonly #call: ClientDuplexStream<Buffer, Buffer>;
  readonly #request: Message<unknown>;
  constructor(call: ClientDuplexStream<Buffer, Buffer>, request: Message<unknown>, response: Message<unknown>) {
    this.#call = call;
    this.#request = request;
    const add = (message: Value): void => {
      this.messages.push(message);
      this.#wake();
    };
    call.on("data", (bytes: Buffer) => add(shown(response.decode(bytes))));
    call.on("error", ({ code, details }: ServiceError) => add({ code, details }));
    call.on("end", () => add({ type: "end" }));
  }

  send(value: object): this {
    this.#call.write(Buffer.from(this.#request.encode(value)));
    return this;
  }

  halfClose(): this {
    this.#call.end();
    return this;
  }

  /** @returns the first `count` messages, once they have arrived */
  async first(count: number): Promise<Value[]> {
    while (this.messages.length < count) await new Promise<void>((resolve) => (this.#wake = resolve));
    return this.messages.slice(0, count);
  }

  cancel(): void {
    this.#call.cancel();
  }
}

/** Removes the ids of the cluster and member, the term, and empty fields. */
function shown(value: unknown): Value {
  const { header, ...rest } = value as Value & { header?: { revision: number } };
  return { ...(header && { revision: header.revision }), ...rest };
}

/** Expects the member to answer like etcd. Both must have received the same calls before. */
async function same(situation: (wire: Wire) => Promise<unknown>): Promise<void> {
  const theirs = await situation(sides.theirs);
  expect(await situation(sides.ours)).toEqual(theirs);
}

const KV = {
  put: (wire: Wire, key: string, value: string, more: object = {}) =>
    wire.call("KV/Put", of.putRequest, of.putResponse, { key, value, ...more }),
  txn: (wire: Wire, value: object) => wire.call("KV/Txn", of.txnRequest, of.txnResponse, value),
  compact: (wire: Wire, revision: number) => wire.call("KV/Compact", of.compactionRequest, of.headerOnly, { revision }),
  range: (wire: Wire, value: object) => wire.call("KV/Range", of.rangeRequest, of.rangeResponse, value),
  remove: (wire: Wire, value: object) =>
    wire.call("KV/DeleteRange", of.deleteRangeRequest, of.deleteRangeResponse, value),
};
const create = (key: string, more: object = {}) => ({ create_request: { key, ...more } });
const progress = { progress_request: {} };

/** Brings both sides to the same revision, because a member writes a key of its own when it starts. */
async function levelled(): Promise<number> {
  const { ours, theirs } = sides;
  const urls = async () => {
    const { members } = await ours.call("Cluster/MemberList", of.nothing, of.memberListResponse, {});
    return (members as { clientURLs: string[] }[]).flatMap(({ clientURLs }) => clientURLs);
  };
  await vi.waitFor(async () => expect(await urls()).not.toEqual([]), PATIENCE);
  const revisionOf = async (wire: Wire) => (await KV.range(wire, { key: "level" })).revision as number;
  const target = Math.max(await revisionOf(ours), await revisionOf(theirs)) + 1;
  for (const wire of [ours, theirs]) while ((await revisionOf(wire)) < target) await KV.put(wire, "level", "");
  for (const wire of [ours, theirs]) await KV.remove(wire, { key: "level" });
  return target + 1;
}

/** This test is first because it needs servers that have not been compacted. */
test("compaction", { tags: ["long"] }, async () => {
  await same((wire) => KV.compact(wire, -1));
  await same((wire) => KV.compact(wire, 0));
  await same((wire) => KV.compact(wire, base + 1));
});

test("rejected requests", { tags: ["long"] }, async () => {
  const empty = { compare: [], success: [{}], failure: [] };
  await same((wire) => KV.txn(wire, empty));
  await same((wire) => KV.txn(wire, { compare: [], success: [{ request_txn: empty }], failure: [] }));
  await same((wire) => KV.txn(wire, { compare: [{ key: "" }], success: [], failure: [] }));
  await same((wire) => KV.txn(wire, { compare: [], success: [{ request_put: { key: "" } }], failure: [] }));
  await same((wire) => KV.put(wire, "", "x"));
  await same((wire) => KV.put(wire, "k", "x", { ignore_value: true }));
  await same((wire) => KV.put(wire, "k", "", { ignore_value: true }));
  await same((wire) => KV.put(wire, "k", "x", { lease: "77" }));
  await same((wire) => KV.put(wire, "k", "x", { lease: "77", ignore_lease: true }));
  await same((wire) => KV.range(wire, { key: "" }));
  await same((wire) => KV.range(wire, { key: "b", range_end: "a" }));
  await same((wire) => KV.range(wire, { key: "a", revision: 99 }));
  await same((wire) => KV.remove(wire, { key: "" }));
  await same((wire) => KV.remove(wire, { key: "b", range_end: "a" }));
});

test("leases", { tags: ["long"] }, async () => {
  const grant = (wire: Wire, ID: string, TTL: number) =>
    wire.call("Lease/LeaseGrant", of.leaseGrantRequest, of.leaseGrantResponse, { ID, TTL });
  const ids = async (wire: Wire) => {
    const { leases } = await wire.call("Lease/LeaseLeases", of.nothing, of.leaseLeasesResponse, {});
    return (leases as { ID: string }[]).map(({ ID }) => ID);
  };
  const revoke = (wire: Wire, ID: string) => wire.call("Lease/LeaseRevoke", of.leaseRequest, of.headerOnly, { ID });
  await same((wire) => grant(wire, "7", 300));
  await same((wire) => grant(wire, "7", 300));
  await same((wire) => grant(wire, "8", 9_000_000_001));
  await same((wire) => grant(wire, "9", -1));
  await same((wire) => grant(wire, "11", 100));
  await same((wire) => grant(wire, "2", 200));
  await same(ids);
  await same((wire) => revoke(wire, "404"));
  await same((wire) =>
    wire.call("Lease/LeaseTimeToLive", of.leaseTimeToLiveRequest, of.leaseTimeToLiveResponse, { ID: "404" }),
  );
});

/** @returns the first messages of a stream */
async function told(stream: Stream, count: number): Promise<Value[]> {
  const found = await stream.first(count);
  stream.cancel();
  return found;
}

test("rejected watches, progress, and past changes", { tags: ["long"] }, async () => {
  await same((wire) => {
    const stream = wire.watch({ hasleader: "true" }).send(progress);
    for (const range_end of ["a", "b"]) stream.send(create("b", { range_end }));
    for (let times = 0; times < 2; times++) stream.send(create("a", { watch_id: 5 }));
    stream.send(create("", { range_end: "\0" })).send({ cancel_request: { watch_id: 5 } });
    return told(stream.send({ cancel_request: { watch_id: 9 } }).send(create("a", { watch_id: 5 })), 8);
  });
  for (const key of ["a", "b"]) await same((wire) => KV.put(wire, key, key.repeat(100)));
  await same((wire) => KV.remove(wire, { key: "a", range_end: "c", prev_kv: true }));
  for (const more of [{}, { prev_kv: true }, { filters: [0] }, { filters: [1] }, { fragment: true }])
    await same((wire) =>
      told(wire.watch().send(create("a", { range_end: "c", start_revision: base + 1, ...more })), 2),
    );
  await same(async (wire) => {
    const stream = wire.watch().send(create("a"));
    await stream.first(1);
    return told(stream.send(progress), 2);
  });
  await same((wire) => KV.compact(wire, base + 2));
  await same((wire) => told(wire.watch().send(create("a", { start_revision: base + 1 })), 2));
});

test("streams whose client sends no more requests", { tags: ["long"] }, async () => {
  await same(async (wire) => {
    const stream = wire.watch().send(create("h")).halfClose();
    await stream.first(1);
    await KV.put(wire, "h", "later");
    return told(stream, 2);
  });
  await same((wire) => told(wire.keepAlive().send({ ID: "7" }).send({ ID: "404" }).halfClose(), 3));
});

const ERRORS = "/usr/share/gocode/src/go.etcd.io/etcd/etcdserver/api/v3rpc/rpctypes/error.go";
const NUMBERS: Readonly<Record<string, number>> = {
  InvalidArgument: 3,
  NotFound: 5,
  PermissionDenied: 7,
  ResourceExhausted: 8,
  FailedPrecondition: 9,
  OutOfRange: 11,
  Unavailable: 14,
};
/** Errors that occur only in Coterie, or in later releases of etcd. */
const notInThatRelease: readonly EtcdErrorName[] = ["answerTooLarge", "invalidSort", "invalidCompare"];

test("errors have the codes and texts of etcd's list", { tags: ["long"] }, () => {
  const theirs = readFileSync(ERRORS, "utf8").matchAll(/status\.New\(codes\.(\w+), "(etcdserver: .+)"\)/g);
  const list = new Set([...theirs].map(([, code = "", text]) => `${NUMBERS[code]} ${text}`));
  expect(list.size).toBeGreaterThan(50);
  const ours = errorNames.map((name) => new EtcdError(name));
  const unknown = ours.filter(({ code, message }) => code !== 2 && !list.has(`${code} ${message}`));
  expect(unknown.map(({ message }) => message).sort()).toEqual(
    notInThatRelease.map((name) => new EtcdError(name).message).sort(),
  );
});
