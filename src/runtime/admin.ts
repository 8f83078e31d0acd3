/** The HTTP server for a member's admin API. See `admin-pages.ts` for the pages. */
import { type Context, Hono } from "hono";
import { stream } from "hono/streaming";
import { EnvironmentError, UsageError, unexpected } from "../core/errors.ts";
import type { Tagged } from "../core/protocol.ts";
import type { TraceEntry } from "../trace/entry.ts";
import type { NodeStatus } from "./admin-pages.ts";
import type { Broadcast } from "./broadcast.ts";
import { type FaultInjector, readFaults } from "./fault-injector.ts";
import type { HostPort } from "./host-port.ts";
import { httpListener } from "./http-listener.ts";
import { jsonBody, TOO_LONG } from "./json-body.ts";
import { type Counts, count } from "./metrics.ts";
import { addSessionPages, SESSION_PAGES, type SessionHost } from "./session-pages.ts";

export interface AdminOptions {
  readonly address: HostPort;
  /** PEM data. With `ca`, callers must present a certificate signed by that authority. Null or absent: no TLS. */
  readonly tls?: AdminTls | null;
  /**
   * Whether to serve only the GET pages that report the member's health, and none that change it or show its messages.
   */
  readonly isReadOnly?: boolean;
  readonly status: () => NodeStatus;
  /** Returns why the member is not ready, or null if it is. */
  readonly missing: () => string | null;
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
  readonly trace: Broadcast<TraceEntry>;
  /** Returns the first entry for a listener that connects too late to get the start of the trace. */
  readonly snapshot: () => TraceEntry;
  /** @throws UsageError if the protocol has no such command */
  readonly command: (command: unknown) => void;
  /**
   * Runs a command that expects a reply, and returns the reply. Absent if the protocol has no such commands. Throws and
   * rejects like `command`.
   */
  readonly request?: (command: Tagged) => Promise<Tagged>;
  /** The fault injector. Null if faults cannot be injected. */
  readonly injector: FaultInjector | null;
  readonly counts: Counts;
  /** The sessions of other programs. Present if they can use this member's elections and locks. */
  readonly sessions?: SessionHost;
}

/** PEM data. */
export interface AdminTls {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string;
}

export interface AdminServer {
  readonly url: string;
  /** Uses these certificates for new connections. Open connections stay open. */
  renew(tls: AdminTls): void;
  close(): Promise<void>;
}

const TRACE_EVERY_MS = 20;
const MAX_TRACE_LISTENERS = 32;
const MAX_CONNECTIONS = 256;

export async function serveAdmin(options: AdminOptions): Promise<AdminServer> {
  const streams = new Set<AbortController>();
  const app = pages(options, streams);
  const tls = options.tls ?? null;
  const listener = await httpListener({
    address: options.address,
    what: "for the admin pages",
    fetch: app.fetch,
    tls: tls && { ...tls, requestCert: tls.ca !== undefined },
    maxConnections: MAX_CONNECTIONS,
  });
  return {
    url: listener.url,
    renew: (material) => listener.renew(material),
    close() {
      for (const stream of streams) stream.abort();
      return listener.close();
    },
  };
}

function pages(options: AdminOptions, streams: Set<AbortController>): Hono {
  const { counts, isReadOnly = false } = options;
  const app = new Hono();
  app.use(async (c, next) => {
    const objection = foreignCaller(c, isReadOnly ? null : options.address.host);
    return objection === null ? next() : c.json({ error: objection }, 403);
  });
  const known = [...addReports(app, options), ...(isReadOnly ? [] : addActs(app, options, streams))];
  app.notFound((c) => c.json({ error: `no such page; known pages: ${known.join(", ")}` }, 404));
  app.onError((error, c) => {
    if (error instanceof EnvironmentError) return c.json({ error: error.message }, 503);
    if (!(error instanceof UsageError)) return c.json({ error: error.message }, 500);
    count(counts.refused, "bad-command");
    return c.json({ error: error.message }, error.code === TOO_LONG ? 413 : 400);
  });
  return app;
}

/** Adds the read-only pages, which are safe to expose on a network. Returns their paths. */
function addReports(app: Hono, { status, metrics, missing }: AdminOptions): readonly string[] {
  // A failed member stops serving its pages, so this page always reports health.
  app.get("/healthz", (c) => c.json({ healthy: true }));
  app.get("/readyz", (c) => {
    const lacks = missing();
    return c.json({ ready: lacks === null, missing: lacks }, lacks === null ? 200 : 503);
  });
  app.get("/status", (c) => c.json(status()));
  app.get("/metrics", async (c) => c.text(await metrics.text(), 200, { "content-type": metrics.contentType }));
  return ["/healthz", "/readyz", "/status", "/metrics"];
}

/** Adds the pages that change the member or show its messages. Returns their paths. */
function addActs(app: Hono, options: AdminOptions, streams: Set<AbortController>): readonly string[] {
  const { command, request, injector, sessions } = options;
  app.get("/trace", (c) =>
    streams.size < MAX_TRACE_LISTENERS
      ? traceStream(c, options, streams)
      : c.json({ error: `${MAX_TRACE_LISTENERS} clients are already reading the trace, which is the maximum` }, 503),
  );
  app.post("/command", async (c) => {
    command(await jsonBody(c));
    return c.json({});
  });
  if (request !== undefined) app.post("/request", async (c) => c.json(await request(tagged(await jsonBody(c)))));
  app.get("/faults", (c) => (injector === null ? off(c) : c.json(injector.faults)));
  app.put("/faults", async (c) => {
    if (injector === null) return off(c);
    injector.faults = readFaults(await jsonBody(c));
    return c.json({});
  });
  if (sessions !== undefined) addSessionPages(app, sessions);
  const [requests, held] = [request === undefined ? [] : ["/request"], sessions === undefined ? [] : SESSION_PAGES];
  return ["/trace", "/command", ...requests, ...held, "/faults"];
}

/** @throws UsageError if the body cannot be a command of any protocol */
function tagged(body: unknown): Tagged {
  const { type } = (typeof body === "object" && body !== null ? body : {}) as { type?: unknown };
  if (typeof type !== "string")
    throw new UsageError("bad-command", unexpected("command", "an object with a type", body));
  return body as Tagged;
}

/**
 * Rejects requests that a page from another site makes through a browser on this machine. Such a request has a foreign
 * `Host`, cannot send JSON without a preflight request, and is marked as coming from another site in `Sec-Fetch-Site`.
 * @param ownHost null if the pages are served on a network, where other machines have their own names for this one
 */
function foreignCaller(c: Context, ownHost: string | null): string | null {
  const site = c.req.header("sec-fetch-site") ?? "none";
  if (c.req.header("origin") !== undefined || site !== "none") return "the admin pages reject requests from web pages";
  if (ownHost === null) return null;
  const name = new URL(c.req.url).hostname;
  const isAddress = name === "localhost" || /^[\d.]+$/.test(name) || name.startsWith("[");
  if (isAddress || name === ownHost.toLowerCase()) return null;
  return unexpected("the host name", "an address or localhost", name);
}

const off = (c: Context) => c.json({ error: "the fault injector is off: start the member with --fault-injector" }, 403);

/** Streams entries as they are recorded, one JSON object per line, until the listener disconnects. */
function traceStream(c: Context, { trace, snapshot }: AdminOptions, streams: Set<AbortController>): Response {
  if (c.req.method === "HEAD") return c.body(null); // A HEAD request would never read or end the stream.
  const left = new AbortController();
  streams.add(left);
  c.header("content-type", "application/x-ndjson");
  c.header("cache-control", "no-store");
  return stream(c, async (out) => {
    out.onAbort(() => left.abort());
    const batches = trace.listen({ everyMs: TRACE_EVERY_MS, signal: left.signal });
    try {
      let next = batches.next(); // Subscribe before taking the snapshot, so that no later entry is missed.
      const opening = trace.takeOpening();
      // If the stream begins with the start of the trace, no snapshot is needed. A snapshot would also be newer than
      // entries that are still waiting for the disk.
      await out.write(opening.length > 0 ? opening.join("") : line(snapshot()));
      for (let batch = await next; !batch.done; batch = await next) {
        const { lines, dropped } = batch.value;
        const text = lines.join("");
        await out.write(dropped > 0 ? text + catchingUp(dropped, snapshot()) : text);
        next = batches.next();
      }
    } finally {
      left.abort();
      streams.delete(left);
      await batches.return();
    }
  });
}

/** Returns the lines for a listener that missed entries: a gap, followed by a snapshot. */
const catchingUp = (dropped: number, now: TraceEntry): string =>
  line({ at: now.at, node: now.node, kind: "gap", dropped }) + line(now);

const line = (entry: TraceEntry): string => `${JSON.stringify(entry)}\n`;
