/** The admin pages of one member, over HTTP. See `admin-pages.ts` for what they say. */
import { type ServerType, serve } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { stream } from "hono/streaming";
import { EnvironmentError, UsageError, unexpected } from "../core/errors.ts";
import { problem } from "../core/shape.ts";
import type { TraceEntry } from "../core/trace.ts";
import type { NodeStatus } from "./admin-pages.ts";
import type { Broadcast } from "./broadcast.ts";
import { type FaultGate, type Faults, faultsShape } from "./fault-gate.ts";
import { type Counts, count } from "./metrics.ts";
import type { HostPort } from "./transport/tcp.ts";

export interface AdminOptions {
  readonly address: HostPort;
  readonly status: () => NodeStatus;
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
  readonly trace: Broadcast<TraceEntry>;
  /** The entry with which a new listener begins. */
  readonly snapshot: () => TraceEntry;
  /** @throws UsageError for a command that the protocol does not know. */
  readonly command: (command: unknown) => void;
  /** Null where the fault gate stays shut. */
  readonly gate: FaultGate | null;
  readonly counts: Counts;
}

export interface AdminServer {
  /** The base URL. */
  readonly url: string;
  close(): Promise<void>;
}

const TRACE_EVERY_MS = 20;
const MAX_BODY_BYTES = 64 * 1024;

export async function serveAdmin(options: AdminOptions): Promise<AdminServer> {
  const closing = new AbortController();
  const app = pages(options, closing.signal);
  const { host, port } = options.address;
  const server = await new Promise<ServerType>((resolve, reject) => {
    const starting = serve({ fetch: app.fetch, hostname: host, port }, () => resolve(starting));
    starting.once("error", (error: NodeJS.ErrnoException) => {
      const why = error.code === "EADDRINUSE" ? "it is taken: stop what listens there or choose another" : error.message;
      reject(new EnvironmentError("cannot-listen", `cannot listen on ${host}:${port} for the admin pages: ${why}`, { cause: error }));
    });
  });
  const bound = server.address();
  const boundPort = typeof bound === "object" && bound !== null ? bound.port : port;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${boundPort}`,
    close() {
      closing.abort();
      return new Promise((resolve) => {
        server.close(() => resolve());
        if ("closeAllConnections" in server) server.closeAllConnections();
      });
    },
  };
}

function pages({ status, metrics, trace, snapshot, command, gate, counts }: AdminOptions, closing: AbortSignal): Hono {
  const app = new Hono();
  // Pages of other sites may make a browser on this machine call here: they cannot name us as the host they call,
  // nor send JSON without asking first.
  app.use(async (c, next) => {
    const name = new URL(c.req.url).hostname;
    if (c.req.header("origin") !== undefined) return c.json({ error: "the admin pages are not for web pages" }, 403);
    if (!isAddress(name)) return c.json({ error: unexpected("the host name", "an address or localhost", name) }, 403);
    return next();
  });
  app.use(bodyLimit({ maxSize: MAX_BODY_BYTES, onError: (c) => c.json({ error: `a body may have ${MAX_BODY_BYTES} bytes` }, 413) }));
  app.get("/status", (c) => c.json(status()));
  app.get("/metrics", async (c) => c.text(await metrics.text(), 200, { "content-type": metrics.contentType }));
  app.get("/trace", (c) => traceStream(c, trace, snapshot, closing));
  app.post("/command", async (c) => {
    try {
      command(await jsonBody(c));
      return c.json({});
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      count(counts.refused, "bad-command");
      return c.json({ error: error.message }, 400);
    }
  });
  app.get("/faults", (c) => (gate === null ? shut(c) : c.json(gate.faults)));
  app.put("/faults", async (c) => {
    if (gate === null) return shut(c);
    const faults = await jsonBody(c);
    const wrong = problem(faultsShape, faults, "faults");
    if (wrong !== null) return c.json({ error: wrong }, 400);
    gate.faults = faults as Faults;
    return c.json({});
  });
  app.notFound((c) => c.json({ error: `no such page; there are /status, /metrics, /trace, /command and /faults` }, 404));
  return app;
}

const shut = (c: Context) => c.json({ error: "the fault gate is shut: start the member with --fault-gate" }, 403);

async function jsonBody(c: Context): Promise<unknown> {
  if (!c.req.header("content-type")?.startsWith("application/json"))
    throw new UsageError("bad-command", unexpected("the content type", "application/json", c.req.header("content-type")));
  try {
    return await c.req.json();
  } catch {
    throw new UsageError("bad-command", "expected the body to be JSON, and it does not parse");
  }
}

/** Entries as they happen, one JSON object per line, until the listener leaves. */
function traceStream(c: Context, trace: Broadcast<TraceEntry>, snapshot: () => TraceEntry, closing: AbortSignal): Response {
  c.header("content-type", "application/x-ndjson");
  c.header("cache-control", "no-store");
  return stream(c, async (out) => {
    const left = new AbortController();
    out.onAbort(() => left.abort());
    closing.addEventListener("abort", () => left.abort(), { once: true });
    const entries = trace.listen({ everyMs: TRACE_EVERY_MS, signal: left.signal });
    const first = entries.next(); // Listening begins here, so that nothing after the snapshot is missed.
    await out.write(line(snapshot()));
    for (let batch = await first; !batch.done; batch = await entries.next()) {
      const { items, dropped } = batch.value;
      if (dropped > 0) await out.write(line({ at: Date.now(), node: snapshot().node, kind: "gap", dropped }));
      await out.write(items.map(line).join(""));
    }
  });
}

const line = (entry: TraceEntry): string => `${JSON.stringify(entry)}\n`;

const isAddress = (name: string): boolean => name === "localhost" || /^[\d.]+$/.test(name) || name.startsWith("[");
