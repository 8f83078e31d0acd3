/**
 * The admin pages of a member that lends its elections and locks to other programs of its machine. `POST /locks/NAME` and
 * `POST /elections/NAME` are answered with JSON lines for as long as the session lasts; `PUT /sessions/ID` says that the
 * caller lives, `DELETE /sessions/ID` that it is done.
 */
import type { Context, Hono } from "hono";
import { stream } from "hono/streaming";
import { jsonBody } from "./json-body.ts";

export interface SessionHost {
  /** @throws UsageError for a name or a wish that cannot be, EnvironmentError where there are too many. */
  open(kind: "election" | "mutex", name: string, wish: unknown): OpenSession;
  /** @throws UsageError if there is no such session. */
  keep(id: string): void;
  /** Nothing runs under the session any more. Resolves once what it held has been given back. */
  release(id: string): Promise<void>;
}

export interface OpenSession {
  /** What happens, as it happens, to the session's end; bounded, however slowly it is read. */
  readonly words: AsyncIterable<object>;
  /** The connection has ended. */
  leave(): void;
}

export const SESSION_PAGES = ["/locks/NAME", "/elections/NAME", "/sessions/ID"];

const KINDS = { locks: "mutex", elections: "election" } as const;

export function addSessionPages(app: Hono, host: SessionHost): void {
  for (const [page, kind] of Object.entries(KINDS))
    app.post(`/${page}/:name`, async (c) => {
      const wish = await jsonBody(c);
      return wordsOf(c, host.open(kind, c.req.param("name"), wish));
    });
  app.put("/sessions/:id", (c) => {
    host.keep(c.req.param("id"));
    return c.json({});
  });
  app.delete("/sessions/:id", async (c) => {
    await host.release(c.req.param("id"));
    return c.json({});
  });
}

function wordsOf(c: Context, { words, leave }: OpenSession): Response {
  c.header("content-type", "application/x-ndjson");
  c.header("cache-control", "no-store");
  return stream(c, async (out) => {
    out.onAbort(leave);
    try {
      for await (const word of words) await out.write(`${JSON.stringify(word)}\n`);
    } finally {
      leave();
    }
  });
}
