/**
 * The admin pages that let other programs on the machine use the member's elections and locks. `POST /locks/NAME` and
 * `POST /elections/NAME` respond with JSON lines for as long as the session lasts. `PUT /sessions/ID` renews the
 * session, and `DELETE /sessions/ID` ends it.
 */
import type { Context, Hono } from "hono";
import { stream } from "hono/streaming";
import { jsonBody } from "./json-body.ts";

/** Opens and closes the sessions of other programs. */
export interface SessionHost {
  /** @throws UsageError if the name or the request is invalid, EnvironmentError if there are too many sessions */
  open(kind: "election" | "mutex", name: string, wish: unknown): OpenSession;
  /** @throws UsageError if the session does not exist */
  keep(id: string): void;
  /** Ends the session of a program that no longer needs it. Resolves once its lock or leadership has been released. */
  release(id: string): Promise<void>;
}

/** A session of another program. */
export interface OpenSession {
  /**
   * The session's notifications as they occur, until the session ends. Their number is bounded even if the reader is
   * slow.
   */
  readonly words: AsyncIterable<object>;
  /** Call this when the connection has ended. */
  leave(): void;
}

/** The paths of these pages, for the list of all pages. */
export const SESSION_PAGES = ["/locks/NAME", "/elections/NAME", "/sessions/ID"];

const KINDS = { locks: "mutex", elections: "election" } as const;

/** Adds these pages to the admin pages. */
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
