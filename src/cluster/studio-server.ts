/**
 * The server of `coterie up` and `coterie studio`, on its own port. It serves the studio page, its feed and its actions
 * (`feed.ts`), and the status of the whole cluster. Only programs on this machine can reach it. Browsers are among
 * these programs, so requests from pages on other sites are refused.
 */
import { existsSync } from "node:fs";
import { serveStatic } from "@hono/node-server/serve-static";
import { type Context, Hono, type Next } from "hono";
import { bodyLimit } from "hono/body-limit";
import { z } from "zod";
import { UsageError, unexpected } from "../core/errors.ts";
import { packageFile } from "../runtime/package-files.ts";
import type { Act } from "./feed.ts";
import { firstProblem } from "./first-problem.ts";
import { type FeedSource, studioFeed } from "./studio-feed.ts";

const MAX_BODY_BYTES = 64 * 1024;
const MAX_PAGES = 64;
const MAX_GROUPS = 128;
const MAX_DELAY_MS = 60_000;

/** The folder with the built page, next to the compiled code. */
const STUDIO_FOLDER = packageFile("dist/studio");

const SECURITY_HEADERS = {
  "content-security-policy":
    "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; object-src 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
};

const node = z.int("a node's id").nonnegative("a node's id");
const nodes = z.array(node, "a list of nodes").max(MAX_GROUPS, `at most ${MAX_GROUPS} nodes`);
const delay = z.number("a number of milliseconds").min(0, "at least 0").max(MAX_DELAY_MS, `at most ${MAX_DELAY_MS}`);

const actSchema = z.discriminatedUnion(
  "type",
  [
    z.strictObject({ type: z.enum(["kill", "restart", "pause", "resume"]), node }),
    z.strictObject({ type: z.enum(["cut", "mend"]), nodes: z.tuple([node, node], "two nodes") }),
    z.strictObject({
      type: z.literal("split"),
      groups: z.array(nodes, "a list of groups").max(MAX_GROUPS, "fewer groups"),
    }),
    z.strictObject({ type: z.literal("heal") }),
    z.strictObject({
      type: z.literal("link-conditions"),
      dropRate: z.number("a probability").min(0, "a probability").max(1, "a probability"),
      delayMs: z
        .tuple([delay, delay], "two numbers of milliseconds")
        .refine(([min, max]) => min <= max, "the smaller delay and then the greater"),
    }),
    z.strictObject({
      type: z.literal("command"),
      node,
      command: z.string("a command").regex(/^[\w-]{1,64}(\.[\w-]{1,64})?$/, "a command such as election.call"),
    }),
  ],
  "an action such as kill, restart, pause, resume, cut, mend, split, heal, link-conditions or command",
);

/** A cluster for the studio, which either runs on this machine or has members running elsewhere. */
export interface StudioSource extends FeedSource {
  status(): Promise<object>;
  act(act: Act): Promise<void>;
}

export interface StudioServerOptions {
  readonly cluster: StudioSource;
  readonly port: number;
  /** Whether to serve the studio. If not, the server only reports the status and accepts actions. */
  readonly studio: boolean;
}

/** Creates the studio's pages. They answer only requests from this machine. */
export function studioPages({ cluster, port, studio }: StudioServerOptions): Hono {
  const app = new Hono();
  app.use(onlyFromHere(port));
  app.get("/status", async (c) => c.json(await cluster.status()));
  app.post("/api/act", onlyJson(), tooLong(), async (c) => c.json(await take(cluster, c)));
  if (studio) {
    app.get("/api/feed", feed(cluster));
    app.get("/*", page());
  }
  app.notFound((c) => c.json({ error: `no such page: ${c.req.method} ${c.req.path}` }, 404));
  app.onError((error, c) => c.json({ error: error.message }, error instanceof UsageError ? 400 : 502));
  return app;
}

/**
 * Refuses requests with a foreign host name. A page on a different site whose name resolves to this machine still sends
 * that name (DNS rebinding).
 */
function onlyFromHere(port: number) {
  const ours = ["127.0.0.1", "localhost", "[::1]"].map((name) => `${name}:${port}`);
  return async (c: Context, next: Next) => {
    const host = c.req.header("host") ?? "";
    const origin = c.req.header("origin");
    if (!ours.includes(host.toLowerCase()))
      return c.json({ error: unexpected("the host", ours.join(" or "), host) }, 403);
    if (c.req.method !== "GET" && origin !== undefined && origin !== `http://${host}`)
      return c.json({ error: unexpected("the origin", `http://${host}`, origin) }, 403);
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) c.header(name, value);
    return next();
  };
}

/**
 * Refuses content types other than JSON. A form on a different site can send any other content type without a preflight
 * request.
 */
function onlyJson() {
  return async (c: Context, next: Next) => {
    const type = c.req.header("content-type") ?? "";
    if (/^application\/json\s*(;|$)/i.test(type)) return next();
    return c.json({ error: unexpected("the content type", "application/json", type) }, 415);
  };
}

function tooLong() {
  const error = `expected a body of at most ${MAX_BODY_BYTES} bytes`;
  return bodyLimit({ maxSize: MAX_BODY_BYTES, onError: (c) => c.json({ error }, 413) });
}

async function take(cluster: StudioSource, c: Context): Promise<object> {
  const value: unknown = await c.req.json().catch(() => {
    throw new UsageError("bad-act", "expected the body to be JSON");
  });
  const act = actSchema.safeParse(value);
  if (!act.success) throw new UsageError("bad-act", firstProblem(act.error, value, "the act"));
  await cluster.act(act.data);
  return {};
}

function feed(cluster: FeedSource) {
  let pageCount = 0;
  const headers = { "content-type": "text/event-stream", "cache-control": "no-store" };
  return (c: Context) => {
    // Hono answers HEAD like GET and drops the body unread, so the body would never be closed.
    if (c.req.method === "HEAD") return c.body(null, 200, headers);
    if (pageCount >= MAX_PAGES) return c.json({ error: `${MAX_PAGES} pages are already open: close some` }, 503);
    pageCount += 1;
    const body = studioFeed(cluster, () => {
      pageCount -= 1;
    });
    return c.body(body, 200, headers);
  };
}

/** Creates only the laboratory's pages: static files, without a cluster. */
export function laboratoryPages(port: number): Hono {
  const app = new Hono();
  app.use(onlyFromHere(port));
  app.get("/", (c) => c.redirect("laboratory.html"));
  app.get("/*", page());
  return app;
}

function page() {
  if (!existsSync(STUDIO_FOLDER))
    return (c: Context) => c.json({ error: "the studio has not been built: run `npm run build`" }, 404);
  // Except for those with hashed names, files change with every build, so the browser must revalidate them.
  return serveStatic({ root: STUDIO_FOLDER, onFound: (_path, c) => c.header("cache-control", "no-cache") });
}
