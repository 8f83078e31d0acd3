/**
 * etcd's JSON gateway: the methods of the gRPC services as HTTP/1 requests with JSON bodies, for Patroni, etcd3gw, curl
 * and other clients without gRPC. A streaming method takes any number of JSON objects in the request body, and answers
 * with one object for each message. Paths, status codes and errors are those of etcd 3.4.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { DoorRoom, Place } from "./door-room.ts";
import { type Duplex, MAX_REQUEST_BYTES, type Method, type Services, statusOf } from "./grpc-door.ts";
import type { Leadership } from "./leadership.ts";
import { fromJson, JsonObjects, toJson } from "./protobuf-json.ts";

/** Each path of the gateway after `/v3/`, with its service and method. */
const paths: Readonly<Record<string, readonly [service: string, method: string]>> = {
  "kv/range": ["etcdserverpb.KV", "Range"],
  "kv/put": ["etcdserverpb.KV", "Put"],
  "kv/deleterange": ["etcdserverpb.KV", "DeleteRange"],
  "kv/txn": ["etcdserverpb.KV", "Txn"],
  "kv/compaction": ["etcdserverpb.KV", "Compact"],
  watch: ["etcdserverpb.Watch", "Watch"],
  "lease/grant": ["etcdserverpb.Lease", "LeaseGrant"],
  "lease/revoke": ["etcdserverpb.Lease", "LeaseRevoke"],
  "lease/keepalive": ["etcdserverpb.Lease", "LeaseKeepAlive"],
  "lease/timetolive": ["etcdserverpb.Lease", "LeaseTimeToLive"],
  "lease/leases": ["etcdserverpb.Lease", "LeaseLeases"],
  "kv/lease/revoke": ["etcdserverpb.Lease", "LeaseRevoke"],
  "kv/lease/timetolive": ["etcdserverpb.Lease", "LeaseTimeToLive"],
  "kv/lease/leases": ["etcdserverpb.Lease", "LeaseLeases"],
  "lock/lock": ["v3lockpb.Lock", "Lock"],
  "lock/unlock": ["v3lockpb.Lock", "Unlock"],
  "election/campaign": ["v3electionpb.Election", "Campaign"],
  "election/proclaim": ["v3electionpb.Election", "Proclaim"],
  "election/leader": ["v3electionpb.Election", "Leader"],
  "election/observe": ["v3electionpb.Election", "Observe"],
  "election/resign": ["v3electionpb.Election", "Resign"],
  "cluster/member/list": ["etcdserverpb.Cluster", "MemberList"],
  "cluster/member/add": ["etcdserverpb.Cluster", "MemberAdd"],
  "cluster/member/remove": ["etcdserverpb.Cluster", "MemberRemove"],
  "cluster/member/update": ["etcdserverpb.Cluster", "MemberUpdate"],
  "cluster/member/promote": ["etcdserverpb.Cluster", "MemberPromote"],
  "maintenance/status": ["etcdserverpb.Maintenance", "Status"],
  "maintenance/alarm": ["etcdserverpb.Maintenance", "Alarm"],
  "maintenance/defragment": ["etcdserverpb.Maintenance", "Defragment"],
  "maintenance/transfer-leadership": ["etcdserverpb.Maintenance", "MoveLeader"],
  "maintenance/hash": ["etcdserverpb.Maintenance", "HashKV"],
  "maintenance/snapshot": ["etcdserverpb.Maintenance", "Snapshot"],
  "auth/authenticate": ["etcdserverpb.Auth", "Authenticate"],
  "auth/enable": ["etcdserverpb.Auth", "AuthEnable"],
  "auth/disable": ["etcdserverpb.Auth", "AuthDisable"],
  "auth/user/list": ["etcdserverpb.Auth", "UserList"],
  "auth/user/add": ["etcdserverpb.Auth", "UserAdd"],
  "auth/role/list": ["etcdserverpb.Auth", "RoleList"],
  "auth/role/add": ["etcdserverpb.Auth", "RoleAdd"],
};

/** A request path. Clients written for etcd 3.3 and 3.2 send `v3beta` and `v3alpha`. */
const PATH = /^\/v3(?:beta|alpha)?\/([a-z/-]+)$/;
/** Base64 adds a third to the size of a request. */
const MAX_JSON_BYTES = 2 * MAX_REQUEST_BYTES;
/** How long a body may take: of a request without a stream, or after a stream has ended. */
const BODY_MS = 30_000;
const INVALID_ARGUMENT = 3;
const UNIMPLEMENTED = 12;

/** HTTP status codes, by gRPC code, as in grpc-gateway 1.9. */
const HTTP_CODES: Readonly<Record<number, number>> = {
  1: 408,
  2: 500,
  3: 400,
  4: 504,
  5: 404,
  6: 409,
  7: 403,
  8: 429,
  9: 412,
  10: 409,
  11: 400,
  12: 501,
  13: 500,
  14: 503,
  16: 401,
};

interface GatewayOptions {
  readonly services: Services;
  readonly room: DoorRoom;
  readonly leadership: Pick<Leadership, "require" | "follow">;
  /** The etcd release whose API is served. */
  readonly version: string;
}

/** Serves HTTP/1 connections that another server has accepted. */
export class Gateway {
  readonly #options: GatewayOptions;
  readonly #server = createServer({ requestTimeout: 0 }, (request, response) => this.#serve(request, response));

  constructor(options: GatewayOptions) {
    this.#options = options;
  }

  accept(socket: Socket): void {
    this.#server.emit("connection", socket);
    socket.resume();
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    request.on("error", () => {});
    response.on("error", () => {});
    const { method, url = "" } = request;
    // Browsers send this header. Pages must not reach a server without authentication that listens on loopback.
    if (request.headers.origin !== undefined) return plain(response, 403, "requests from web pages are not allowed");
    const [path = ""] = url.split("?");
    const page = this.#pages[path];
    if (page !== undefined) return method === "GET" ? page(response) : plain(response, 405, "Method Not Allowed");
    const named = paths[PATH.exec(path)?.[1] ?? ""];
    if (named === undefined) return plain(response, 404, "Not Found");
    if (method !== "POST") return plain(response, 405, "Method Not Allowed");
    const [service, name] = named;
    const found = this.#options.services[service]?.[name];
    if (found === undefined) {
      const details = `unknown method ${name} for service ${service}`;
      return json(response, 501, errorOf({ code: UNIMPLEMENTED, details }));
    }
    const call = `${service.slice(service.indexOf(".") + 1)}/${name}`;
    void new Exchange(call, found, request, response, this.#options).serve();
  }

  readonly #pages: Readonly<Record<string, (response: ServerResponse) => void>> = {
    "/version": (response) => {
      const { version } = this.#options;
      json(response, 200, { etcdserver: version, etcdcluster: version.replace(/\d+$/, "0") });
    },
    "/health": (response) => {
      try {
        this.#options.leadership.require();
        json(response, 200, { health: "true" });
      } catch {
        json(response, 503, { health: "false" });
      }
    },
  };
}

/** One request and its response. */
class Exchange {
  readonly #controller = new AbortController();
  /** Called when the client has read the pending data or has disconnected. */
  #goOn = (): void => {};
  #hasFailed = false;

  constructor(
    readonly call: string,
    readonly method: Method,
    readonly request: IncomingMessage,
    readonly response: ServerResponse,
    readonly options: GatewayOptions,
  ) {
    response.on("drain", () => this.#goOn());
    response.on("finish", () => {
      if (method.stream !== null) this.#limitBody();
      request.resume(); // The next request on this connection comes after the rest of the body.
    });
    response.on("close", () => {
      this.#controller.abort();
      this.#goOn();
    });
  }

  async serve(): Promise<void> {
    const { room, leadership } = this.options;
    const { signal } = this.#controller;
    try {
      const place = room.enter(this.call);
      signal.addEventListener("abort", () => place.leave());
      const requiresLeader = this.request.headers["grpc-metadata-hasleader"] === "true";
      if (requiresLeader) leadership.require();
      if (this.method.stream === null) return await this.#answer(place);
      if (requiresLeader)
        signal.addEventListener(
          "abort",
          leadership.follow((error) => this.#fail(error)),
        );
      const send = (response: unknown): Promise<void> => this.#send(response);
      const fail = (error: unknown): void => this.#fail(error);
      await this.method.stream({ requests: this.#requests(), signal, send, fail } satisfies Duplex<unknown, unknown>);
      this.response.end();
    } catch (error) {
      this.#fail(error);
    }
  }

  async #answer(place: Place): Promise<void> {
    this.#limitBody();
    let request: unknown;
    for await (const each of this.#requests()) {
      request = each;
      break; // etcd ignores anything after the first object.
    }
    const { request: type, response, handle } = this.method;
    const answer = await handle?.(request ?? fromJson(type, "{}"), this.#controller.signal);
    const text = JSON.stringify(toJson(response, answer as object));
    place.hold(text.length);
    json(this.response, 200, text);
  }

  /** Closes the connection if the rest of the body takes too long. */
  #limitBody(): void {
    const { request } = this;
    if (request.complete) return;
    const late = setTimeout(() => request.destroy(), BODY_MS);
    request.once("close", () => clearTimeout(late));
  }

  /** Reads the objects in the body, one after another. */
  async *#requests(): AsyncGenerator<unknown> {
    const objects = new JsonObjects(MAX_JSON_BYTES);
    const decoded = (text: string): unknown => {
      try {
        return fromJson(this.method.request, text);
      } catch (error) {
        throw this.#malformed(error);
      }
    };
    const body = this.request.iterator({ destroyOnReturn: false });
    for await (const bytes of body) for (const text of objects.take(bytes as Buffer)) yield decoded(text);
    const rest = objects.rest();
    if (rest !== "") yield decoded(rest);
  }

  #malformed(error: unknown): Malformed {
    this.options.room.malformed(this.call, error);
    return new Malformed((error as Error).message);
  }

  async #send(value: unknown): Promise<void> {
    const { signal } = this.#controller;
    if (signal.aborted || this.#hasFailed) return;
    if (!this.response.headersSent) this.response.writeHead(200, { "content-type": "application/json" });
    const line = `${JSON.stringify({ result: toJson(this.method.response, value as object) })}\n`;
    if (this.response.write(line)) return;
    while (this.response.writableNeedDrain && !signal.aborted)
      await new Promise<void>((resolve) => (this.#goOn = resolve));
  }

  #fail(error: unknown): void {
    if (this.#controller.signal.aborted || this.#hasFailed) return;
    this.#hasFailed = true;
    const isMalformed = error instanceof Malformed;
    if (!isMalformed) this.options.room.fail(error);
    const status = isMalformed ? { code: INVALID_ARGUMENT, details: error.message } : statusOf(error);
    const httpCode = HTTP_CODES[status.code] ?? 500;
    if (!this.response.headersSent) return json(this.response, httpCode, errorOf(status));
    const inStream = { grpc_code: status.code, http_code: httpCode, message: status.details };
    this.response.end(`${JSON.stringify({ error: inStream })}\n`);
  }
}

/** The error for a request body that is not a message. */
class Malformed extends Error {}

const errorOf = ({ code, details }: { readonly code: number; readonly details: string }): object => ({
  error: details,
  message: details,
  code,
});

function json(response: ServerResponse, code: number, body: object | string): void {
  response.writeHead(code, { "content-type": "application/json" });
  response.end(typeof body === "string" ? body : JSON.stringify(body));
}

function plain(response: ServerResponse, code: number, text: string): void {
  response.writeHead(code, { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" });
  response.end(`${text}\n`);
}
