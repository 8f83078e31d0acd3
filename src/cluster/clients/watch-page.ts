/** Serves a watch over HTTP, as server-sent events. A reader that reconnects with the last id misses no change. */
import type { Context } from "hono";
import { streamSSE } from "hono/streaming";
import { z } from "zod";
import { EnvironmentError, UsageError, unexpected } from "../../core/errors.ts";
import type { SharedState } from "../services/state/shared-state.ts";
import type { Change } from "../services/state/state-api.ts";
import { httpError } from "./http-errors.ts";
import { number } from "./http-requests.ts";

const MAX_WATCHES = 1_000;
/** The interval at which an idle watch sends a comment as a sign of life. */
const COMMENT_EVERY_MS = 15_000;

export const watchQuery = z.strictObject({
  after: number.optional().describe("return changes after this revision; default: only new changes"),
  key: z.string().optional().describe("only changes to this key"),
  prefix: z.string().optional().describe("only changes to keys with this prefix"),
});

/**
 * Streams the changes. Several changes may share a revision, so an event's id also contains the position of the change
 * within the revision. A reader can then resume right after that change.
 */
export function watch(
  c: Context,
  state: SharedState,
  { after: asked, key, prefix }: z.infer<typeof watchQuery>,
  watches: Set<AbortController>,
): Response {
  if (c.req.method === "HEAD") return c.body(null); // A HEAD request would never read or end the stream.
  if (key !== undefined && prefix !== undefined)
    throw new UsageError("bad-request", unexpected("prefix", "absent when key is set", prefix));
  if (watches.size >= MAX_WATCHES)
    throw new EnvironmentError(
      "too-many-watches",
      `this member already serves ${MAX_WATCHES} watches, which is the maximum`,
    );
  const seen = c.req.header("last-event-id");
  const [last, at, place] = /^(\d{1,15})\.(\d{1,6})$/.exec(seen ?? "") ?? [];
  if (seen !== undefined && last === undefined)
    throw new UsageError("bad-request", unexpected("Last-Event-ID", "the id of an event, such as 12.1", seen));
  const map = state.map<unknown>(c.req.param("map") ?? "");
  const after = last === undefined ? (asked ?? state.host.revision) : Number(at) - 1;
  const begins = after ?? state.host.current();
  const left = new AbortController();
  const changes = map.watch({
    signal: left.signal,
    ...(after === null ? {} : { after }),
    ...(key === undefined ? {} : { key }),
    ...(prefix === undefined ? {} : { prefix }),
  });
  watches.add(left);
  return streamSSE(c, async (out) => {
    out.onAbort(() => left.abort());
    const alive = setInterval(() => void out.write(": here\n\n"), COMMENT_EVERY_MS);
    try {
      await out.write(": here\n\n");
      // Send an id without data: EventSource stores it but dispatches no event. If it disconnects before its first
      // event, it resumes from this revision.
      void Promise.resolve(begins).then(
        (revision) => out.write(`id: ${last ?? `${revision + 1}.0`}\n\n`),
        () => {}, // The watch itself reports the error.
      );
      await tell(changes, Number(place ?? 0), (event) => out.writeSSE(event));
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
