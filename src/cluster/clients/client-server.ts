/** Where a member serves clients that are no members: HTTP, server-sent events and WebSocket on one port. */
import type { IncomingMessage } from "node:http";
import { createServer } from "node:https";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { type HttpBindings, type ServerType, serve } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { streamSSE } from "hono/streaming";
import { type WebSocket, WebSocketServer } from "ws";
import type { z } from "zod";
import { EnvironmentError, UsageError, unexpected } from "../../core/errors.ts";
import { MAX_WHOLE_BYTES } from "../../protocols/service/coordination-service/operations.ts";
import { formatHostPort, type HostPort } from "../../runtime/host-port.ts";
import { BodyRoom, jsonBody } from "../../runtime/json-body.ts";
import type { ClientCounts } from "../../runtime/metrics.ts";
import { addSessionPages, type SessionHost } from "../../runtime/session-pages.ts";
import type { Pems } from "../certificate-files.ts";
import { firstProblem } from "../first-problem.ts";
import type { Change } from "../services/state/state-api.ts";
import { type Access, mayDo } from "./access-file.ts";
import { type ClientDoor, unknownCaller } from "./client-door.ts";
import { CLIENT_PATH, MAX_CLIENT_WORD_BYTES, type Role } from "./client-words.ts";
import { Forbidden, httpError } from "./http-errors.ts";
import { type Given, type HttpRequest, httpRequests, Other, type Served } from "./http-requests.ts";
import { memberRequests } from "./member-requests.ts";
import { openApi } from "./openapi.ts";

export interface ClientPlace {
  readonly address: HostPort;
  readonly tls: Pems | null;
  readonly access: Access;
  /** Whether anybody may do anything: then callers must have been told this machine's address. */
  readonly isOpen: boolean;
  /** Of web pages that may call, beside those of this very address. */
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
  /** The same where clients know this machine by another host. */
  urlAt(host: string): string;
  /** Connections from now on are proved with these; those that are open stay. */
  renew(tls: Pems): void;
  close(): Promise<void>;
}

const MAX_CONNECTIONS = 2_000;
const MAX_WATCHES = 1_000;
/** Of long bodies that are being read. */
const BODIES_BYTES = 64 * 1024 * 1024;
/** How often a watch that has nothing to tell says that it is there. */
const COMMENT_EVERY_MS = 15_000;

type Env = { Bindings: HttpBindings; Variables: { role: Role } };

export async function serveClients(options: ClientServerOptions): Promise<ClientServer> {
  const { place, door } = options;
  const { address, tls } = place;
  const watches = new Set<AbortController>();
  const app = pages(options, watches);
  const secure = tls && {
    createServer,
    serverOptions: { ...tls, requestCert: tls.ca !== undefined, rejectUnauthorized: false },
  };
  const server = await listening(address, app, secure);
  const sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_CLIENT_WORD_BYTES, perMessageDeflate: false });
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const objection = objectionTo(request, place);
    if (objection !== null || request.url?.split("?")[0] !== CLIENT_PATH) {
      options.counts.refused += 1;
      return socket.end(
        `HTTP/1.1 ${objection === null ? "404 Not Found" : "403 Forbidden"}\r\nconnection: close\r\n\r\n`,
      );
    }
    sockets.handleUpgrade(request, socket, head, (ws) => converse(ws, request, door, place.access));
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.on("error", () => {}); // A caller could not be let in, for want of descriptors, say: it will come again.
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : address.port;
  const urlAt = (host: string): string => `${tls === null ? "http" : "https"}://${formatHostPort({ host, port })}`;
  return {
    url: urlAt(address.host),
    urlAt,
    renew: (material) => void ("setSecureContext" in server && server.setSecureContext({ ...material })),
    close() {
      for (const watch of watches) watch.abort();
      for (const client of sockets.clients) {
        client.close();
        setTimeout(() => client.terminate(), LAST_WORDS_MS).unref(); // What was said last is on its way.
      }
      return new Promise((resolve) => {
        server.close(() => resolve());
        if ("closeAllConnections" in server) server.closeAllConnections();
      });
    },
  };
}

function listening(address: HostPort, app: Hono<Env>, secure: object | null): Promise<ServerType> {
  return new Promise((resolve, reject) => {
    const { host, port } = address;
    const starting = serve({ fetch: app.fetch, hostname: host, port, overrideGlobalObjects: false, ...secure }, () =>
      resolve(starting),
    );
    starting.once("error", (error: NodeJS.ErrnoException) => {
      const why =
        error.code === "EADDRINUSE" ? "it is taken: stop what listens there or choose another" : error.message;
      const text = `cannot listen on ${formatHostPort(address)} for clients: ${why}`;
      reject(new EnvironmentError("cannot-listen", text, { cause: error }));
    });
  });
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
    if (isBinary) guest.dismiss("bad-message", "expected texts of JSON, got bytes", true);
    else guest.hear((data as Buffer).toString());
  });
  ws.on("pong", () => guest.stir());
  ws.on("close", () => guest.left());
  ws.on("error", () => {}); // After it comes "close".
}

const LINGER_MS = 1_000;
const LAST_WORDS_MS = 100;

/** In a certificate that this member's authority has signed. */
function namesOf({ socket }: Pick<IncomingMessage, "socket">): string[] {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return [];
  const { subject, subjectaltname = "" } = socket.getPeerCertificate();
  const names = subjectaltname.split(", ").flatMap((name) => (name.startsWith("DNS:") ? [name.slice(4)] : []));
  const common = subject?.CN;
  return typeof common === "string" ? [common, ...names] : names;
}

/** Why the certificate that was shown names nobody; null where none was shown, or nothing is wrong with it. */
function flawIn({ socket }: Pick<IncomingMessage, "socket">): string | null {
  if (!(socket instanceof TLSSocket) || socket.authorized || socket.getPeerCertificate().raw === undefined) return null;
  return String(socket.authorizationError);
}

/** Pages of other sites may make a browser on this machine call here. */
function objectionTo({ headers }: Pick<IncomingMessage, "headers">, { origins, isOpen }: ClientPlace): string | null {
  const { origin, host = "" } = headers;
  const isOwn = origin === `http://${host}` || origin === `https://${host}`;
  if (origin !== undefined && !isOwn && !origins.includes(origin))
    return `web pages of ${origin} may not call here: name it in the origins of clients`;
  if (!isOpen) return null;
  const name = host.replace(/:\d+$/, "");
  const isAddress = name === "localhost" || /^[\d.]+$/.test(name) || name.startsWith("[");
  return isAddress ? null : unexpected("the host name", "an address or localhost", name);
}

function pages(options: ClientServerOptions, watches: Set<AbortController>): Hono<Env> {
  const { place, sessions, counts, version } = options;
  const app = new Hono<Env>();
  const room = new BodyRoom(MAX_WHOLE_BYTES, BODIES_BYTES);
  app.use(async (c, next) => {
    const objection = objectionTo(c.env.incoming, place);
    if (objection !== null) throw new Forbidden(403, objection);
    await allowOrigin(c, next);
  });
  const description = openApi(version);
  app.get("/openapi.json", (c) => c.json(description));
  app.use("/v1/*", async (c, next) => {
    counts.requests += 1;
    const given = /^Bearer (.+)$/.exec(c.req.header("authorization") ?? "");
    const role = place.access.roleOf(given?.[1] ?? null, namesOf(c.env.incoming));
    if (role === null) throw new Forbidden(401, unknownCaller(flawIn(c.env.incoming)));
    c.set("role", role);
    await next();
  });
  app.get("/v1/maps/:map/watch", (c) => watch(c, options, watches));
  for (const request of [...httpRequests, ...memberRequests])
    app.on(request.method, request.path.replaceAll(/\{(\w+)\}/g, ":$1"), async (c) => {
      requireRole(c, request.role);
      const answer = await request.answered(options.served, await givenIn(c, request, room));
      if (answer instanceof Other) return c.json(answer.body, answer.status);
      if (typeof answer !== "string") return c.json(answer);
      const length = String(Buffer.byteLength(answer));
      return c.body(answer, 200, { "content-type": request.media ?? "text/plain", "content-length": length });
    });
  const held = new Hono<Env>();
  held.use(async (c, next) => {
    requireRole(c, "write");
    await next();
  });
  addSessionPages(held as unknown as Hono, onTheLog(sessions));
  app.route("/v1", held);
  app.notFound((c) => c.json({ error: "no such page: /openapi.json tells which there are", code: "absent" }, 404));
  app.onError((error, c) => {
    counts.refused += 1;
    const { status, body } = httpError(error);
    return c.json(body, status);
  });
  return app;
}

/** So that pages of origins that were named may read the answer. */
async function allowOrigin(c: Context<Env>, next: () => Promise<void>): Promise<void> {
  const origin = c.req.header("origin");
  if (origin !== undefined) {
    c.header("access-control-allow-origin", origin);
    c.header("vary", "origin");
    c.header("access-control-allow-headers", "authorization, content-type");
    c.header("access-control-allow-methods", "GET, PUT, POST, DELETE");
  }
  if (c.req.method === "OPTIONS") c.res = c.body(null, 204);
  else await next();
}

/** @throws Forbidden */
function requireRole(c: Context<Env>, needs: Role): void {
  const has = c.get("role");
  if (!mayDo(has, needs)) throw new Forbidden(403, `expected the role ${needs} for this, got ${has}`);
}

async function givenIn(c: Context<Env>, { path, query, body, hasValues }: HttpRequest, room: BodyRoom): Promise<Given> {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
  return {
    params: Object.fromEntries(names.map((name) => [name, c.req.param(name) ?? ""])),
    query: query === undefined ? {} : parsed(query, c.req.query(), "the query"),
    body:
      body === undefined ? undefined : parsed(body, await jsonBody(c, hasValues === true ? room : null), "the body"),
  };
}

/** @throws UsageError that names the field */
function parsed(shape: z.ZodType, value: unknown, whole: string): unknown {
  const read = shape.safeParse(value);
  if (read.success) return read.data;
  throw new UsageError("bad-request", firstProblem(read.error, value, whole));
}

/** Locks and elections of clients are those of the log, whatever members use. */
const onTheLog = (sessions: SessionHost): SessionHost => ({
  open: (kind, name, wish) => sessions.open(kind, name, { ...(wish as object), algorithm: "raft" }),
  keep: (id) => sessions.keep(id),
  release: (id) => sessions.release(id),
});

/** One change may be one of several of its revision: an event's id says which, so that a reader goes on behind it. */
function watch(c: Context<Env>, options: ClientServerOptions, watches: Set<AbortController>): Response {
  requireRole(c, "read");
  if (c.req.method === "HEAD") return c.body(null); // Nobody would read the stream, nor end it.
  if (watches.size >= MAX_WATCHES)
    throw new EnvironmentError("too-many-watches", `${MAX_WATCHES} watch here, and no more may`);
  const { key, prefix, after: since } = c.req.query();
  const last = /^(\d{1,15})\.(\d{1,6})$/.exec(c.req.header("last-event-id") ?? "");
  const asked = since === undefined ? undefined : Number(since);
  if (asked !== undefined && !/^\d{1,15}$/.test(since ?? ""))
    throw new UsageError("bad-request", unexpected("after", "a whole number of 0 or more", since));
  const after = last === null ? asked : Number(last[1]) - 1;
  const skipped = last === null ? 0 : Number(last[2]);
  const left = new AbortController();
  const changes = options.served.state.map<unknown>(c.req.param("map") ?? "").watch({
    signal: left.signal,
    ...(after === undefined ? {} : { after }),
    ...(key === undefined ? {} : { key }),
    ...(prefix === undefined ? {} : { prefix }),
  });
  watches.add(left);
  return streamSSE(c, async (out) => {
    out.onAbort(() => left.abort());
    const alive = setInterval(() => void out.write(": here\n\n"), COMMENT_EVERY_MS);
    try {
      await out.write(": here\n\n");
      await tell(changes, skipped, (event) => out.writeSSE(event));
    } catch (error) {
      await out.writeSSE({ event: "error", data: JSON.stringify(httpError(error).body) });
    } finally {
      clearInterval(alive);
      left.abort();
      watches.delete(left);
    }
  });
}

async function tell(
  changes: AsyncIterable<Change<unknown>>,
  skipped: number,
  write: (event: { event: string; id: string; data: string }) => Promise<void>,
): Promise<void> {
  let at = 0;
  let place = 0;
  let toSkip = skipped;
  for await (const change of changes) {
    place = change.revision === at ? place + 1 : 1;
    at = change.revision;
    if (toSkip > 0) {
      toSkip -= 1;
      continue;
    }
    await write({ event: "change", id: `${at}.${place}`, data: JSON.stringify(change) });
  }
}
