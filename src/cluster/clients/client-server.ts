/** Serves clients (processes that are not members): HTTP, server-sent events and WebSocket on one port. */
import type { IncomingMessage } from "node:http";
import { type Duplex, Readable } from "node:stream";
import { TLSSocket } from "node:tls";
import type { HttpBindings } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { type WebSocket, WebSocketServer } from "ws";
import type { z } from "zod";
import { UsageError, unexpected } from "../../core/errors.ts";
import { MAX_WHOLE_BYTES } from "../../protocols/service/coordination-service/operations.ts";
import type { Pems } from "../../runtime/certificate-files.ts";
import type { HostPort } from "../../runtime/host-port.ts";
import { httpListener } from "../../runtime/http-listener.ts";
import { BodyRoom, jsonBody } from "../../runtime/json-body.ts";
import type { ClientCounts } from "../../runtime/metrics.ts";
import { addSessionPages, type SessionHost } from "../../runtime/session-pages.ts";
import { firstProblem } from "../first-problem.ts";
import { type Access, mayDo } from "./access-file.ts";
import { type ClientDoor, unknownCaller } from "./client-door.ts";
import { CLIENT_PATH, MAX_CLIENT_WORD_BYTES, type Role } from "./client-words.ts";
import { Forbidden, httpError } from "./http-errors.ts";
import { type Given, type HttpRequest, httpRequests, Other, type Served } from "./http-requests.ts";
import { memberRequests } from "./member-requests.ts";
import { openApi } from "./openapi.ts";
import { asksForWebSocket, goOnWithoutUpgrade, refuseUpgrade } from "./upgrades.ts";
import { watch, watchQuery } from "./watch-page.ts";

/** The address for clients, with its certificate and roles. */
export interface ClientPlace {
  readonly address: HostPort;
  readonly tls: Pems | null;
  readonly access: Access;
  /**
   * Whether callers need no credentials. In that case, their `Host` header must be an IP address or `localhost`, which
   * prevents DNS rebinding.
   */
  readonly isOpen: boolean;
  /** The origins of web pages that may call this server, in addition to its own address. */
  readonly origins: readonly string[];
}

export interface ClientServerOptions {
  readonly place: ClientPlace;
  readonly served: Served;
  readonly door: ClientDoor;
  readonly sessions: SessionHost;
  readonly counts: ClientCounts;
  readonly version: string;
}

export interface ClientServer {
  readonly url: string;
  /** Returns the URL, with the host that clients use for this machine. */
  urlAt(host: string): string;
  /** Uses the given certificates for new connections. Open connections are not affected. */
  renew(tls: Pems): void;
  /** Called when roles have changed. Ends connections whose role is different now. */
  recheck(): void;
  close(): Promise<void>;
}

/** Requests in progress, including streams. */
type Open = Set<{ isStillAllowed(): boolean; end(): void }>;

const MAX_CONNECTIONS = 2_000;
/** The maximum memory for long request bodies that are being read. */
const BODIES_BYTES = 64 * 1024 * 1024;

type Env = { Bindings: HttpBindings; Variables: { role: Role } };

/** Starts the server for clients. */
export async function serveClients(options: ClientServerOptions): Promise<ClientServer> {
  const { place, door } = options;
  const { address, tls } = place;
  const watches = new Set<AbortController>();
  const open: Open = new Set();
  const app = pages(options, watches, open);
  const listener = await httpListener({
    address,
    what: "for clients",
    fetch: app.fetch,
    tls: tls && { ...tls, requestCert: tls.ca !== undefined, rejectUnauthorized: false },
    maxConnections: MAX_CONNECTIONS,
  });
  const sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_CLIENT_WORD_BYTES, perMessageDeflate: false });
  listener.server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (!asksForWebSocket(request)) return goOnWithoutUpgrade(listener.server, request, socket, head);
    const objection = objectionTo(request, place);
    if (objection !== null || request.url?.split("?")[0] !== CLIENT_PATH) {
      options.counts.refused += 1;
      return refuseUpgrade(socket, objection === null ? "404 Not Found" : "403 Forbidden");
    }
    sockets.handleUpgrade(request, socket, head, (ws) => converse(ws, request, door, place.access));
  });
  return {
    url: listener.url,
    urlAt: listener.urlAt,
    renew: (material) => listener.renew(material),
    recheck() {
      door.recheck();
      for (const each of [...open]) if (!each.isStillAllowed()) each.end();
    },
    close() {
      for (const watch of watches) watch.abort();
      for (const client of sockets.clients) {
        client.close();
        setTimeout(() => client.terminate(), LAST_WORDS_MS).unref(); // Allow time to send the last messages.
      }
      return listener.close();
    },
  };
}

function converse(ws: WebSocket, request: IncomingMessage, door: ClientDoor, access: Access): void {
  const names = namesOf(request);
  const wire = {
    send: (text: string) => ws.send(text, () => {}),
    get queuedBytes() {
      return ws.bufferedAmount;
    },
    probe: () => ws.ping(() => {}),
    close: () => {
      ws.close();
      setTimeout(() => ws.terminate(), LINGER_MS).unref();
    },
  };
  const guest = door.accept(wire, (token) => access.roleOf(token, names), flawIn(request));
  ws.on("message", (data, isBinary) => {
    if (isBinary) guest.dismiss("bad-message", "expected JSON text, got bytes", true);
    else guest.hear((data as Buffer).toString());
  });
  ws.on("pong", () => guest.stir());
  ws.on("close", () => guest.left());
  ws.on("error", () => {}); // A "close" event follows.
}

const LINGER_MS = 1_000;
const LAST_WORDS_MS = 100;

/** Returns the names in a certificate signed by this member's authority. */
function namesOf({ socket }: Pick<IncomingMessage, "socket">): string[] {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return [];
  const { subject, subjectaltname = "" } = socket.getPeerCertificate();
  const names = subjectaltname.split(", ").flatMap((name) => (name.startsWith("DNS:") ? [name.slice(4)] : []));
  const common = subject?.CN;
  return typeof common === "string" ? [common, ...names] : names;
}

/** Returns why the client's certificate is not trusted. Null if it is trusted or if there is none. */
function flawIn({ socket }: Pick<IncomingMessage, "socket">): string | null {
  if (!(socket instanceof TLSSocket) || socket.authorized || socket.getPeerCertificate().raw === undefined) return null;
  return String(socket.authorizationError);
}

/**
 * Returns why the request is refused, or null. Pages from other sites can make a browser on this machine send requests
 * to this server.
 */
function objectionTo({ headers }: Pick<IncomingMessage, "headers">, { origins, isOpen }: ClientPlace): string | null {
  const { origin, host = "" } = headers;
  const isOwn = origin === `http://${host}` || origin === `https://${host}`;
  if (origin !== undefined && !isOwn && !origins.includes(origin))
    return `requests from web pages at ${origin} are not allowed: add it to clients.origins`;
  if (!isOpen) return null;
  const name = host.replace(/:\d+$/, "");
  const isAddress = name === "localhost" || /^[\d.]+$/.test(name) || name.startsWith("[");
  return isAddress ? null : unexpected("the host name", "an address or localhost", name);
}

function pages(options: ClientServerOptions, watches: Set<AbortController>, open: Open): Hono<Env> {
  const { place, sessions, counts, version } = options;
  const app = new Hono<Env>();
  const room = new BodyRoom(MAX_WHOLE_BYTES, BODIES_BYTES);
  app.use(async (c, next) => {
    const objection = objectionTo(c.env.incoming, place);
    if (objection !== null) throw new Forbidden(403, objection);
    await allowOrigin(c, next);
  });
  app.use(async (c, next) => {
    requireReadable(c.env.incoming.url ?? "");
    await next();
  });
  const description = openApi(version);
  app.get("/openapi.json", (c) => c.json(description));
  app.use("/v1/*", async (c, next) => {
    counts.requests += 1;
    const given = /^Bearer +(.+)$/i.exec(c.req.header("authorization") ?? "");
    const { incoming, outgoing } = c.env;
    const names = namesOf(incoming);
    const roleNow = (): Role | null => place.access.roleOf(given?.[1] ?? null, names);
    const role = roleNow();
    if (role === null) throw new Forbidden(401, unknownCaller(flawIn(incoming)));
    c.set("role", role);
    const request = { isStillAllowed: () => roleNow() === role, end: () => incoming.socket.destroy() };
    open.add(request);
    outgoing.once("close", () => open.delete(request));
    await next();
  });
  app.get("/v1/maps/:map/watch", (c) => {
    requireRole(c, "read");
    return watch(c, options.served.state, parsed(watchQuery, c.req.query(), "the query"), watches);
  });
  for (const request of [...httpRequests, ...memberRequests])
    app.on(request.method, request.path.replaceAll(/\{(\w+)\}/g, ":$1"), async (c) => {
      requireRole(c, request.role);
      const answer = await request.answered(options.served, await givenIn(c, request, room));
      if (answer instanceof Other) return c.json(answer.body, answer.status);
      if (request.media === undefined) return c.json(answer);
      const bytes = Readable.toWeb(Readable.from(answer as AsyncIterable<Uint8Array>)) as ReadableStream;
      return c.body(bytes, 200, { "content-type": request.media });
    });
  const held = new Hono<Env>();
  for (const page of ["/locks/*", "/elections/*", "/sessions/*"])
    held.use(page, async (c, next) => {
      requireRole(c, "write");
      await next();
    });
  addSessionPages(held as unknown as Hono, sessions);
  app.route("/v1", held);
  app.notFound((c) => c.json({ error: "no such page: see /openapi.json", code: "no-page" }, 404));
  app.onError((error, c) => {
    counts.refused += 1;
    const { status, body } = httpError(error);
    return c.json(body, status);
  });
  return app;
}

/**
 * Rejects URLs that the server would interpret differently from how they were written: invalid UTF-8 would be replaced,
 * and `.` and `..`, in any encoding, would lead to a different page.
 * @throws UsageError
 */
function requireReadable(url: string): void {
  const [path = "", ...query] = url.split("?");
  const names = path.split("/").map(decoded);
  for (const word of query.join("?").split(/[&=]/)) decoded(word);
  if (names.some((name) => name === "." || name === ".."))
    throw new UsageError(
      "bad-request",
      'expected a name other than "." or "..", which a URL cannot contain: use POST /v1/transactions',
    );
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new UsageError("bad-request", `expected percent-encoded UTF-8 in the URL, got ${part}`);
  }
}

/** Allows pages from the configured origins to read the response. */
async function allowOrigin(c: Context<Env>, next: () => Promise<void>): Promise<void> {
  const origin = c.req.header("origin");
  if (origin !== undefined) {
    c.header("access-control-allow-origin", origin);
    c.header("vary", "origin");
    c.header("access-control-allow-headers", "authorization, content-type, last-event-id");
    c.header("access-control-allow-methods", "GET, PUT, POST, DELETE");
  }
  if (c.req.method === "OPTIONS") c.res = c.body(null, 204);
  else await next();
}

/** @throws Forbidden */
function requireRole(c: Context<Env>, needs: Role): void {
  const has = c.get("role");
  if (!mayDo(has, needs)) throw new Forbidden(403, `expected the role ${needs} for this request, got ${has}`);
}

async function givenIn(c: Context<Env>, { path, query, body, hasValues }: HttpRequest, room: BodyRoom): Promise<Given> {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
  const { signal } = c.req.raw;
  return {
    params: Object.fromEntries(names.map((name) => [name, c.req.param(name) ?? ""])),
    query: query === undefined ? {} : { ...parsed<object>(query, c.req.query(), "the query"), signal },
    body: body && { ...(parsed(body, await jsonBody(c, hasValues ? room : null), "the body") as object), signal },
  };
}

/** @throws UsageError that names the field */
function parsed<T>(shape: z.ZodType<T>, value: unknown, whole: string): T {
  const read = shape.safeParse(value);
  if (read.success) return read.data;
  throw new UsageError("bad-request", firstProblem(read.error, value, whole));
}
