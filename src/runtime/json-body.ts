/** The body of a request that has to be JSON, and short. */
import type { Context } from "hono";
import { UsageError, unexpected } from "../core/errors.ts";

const MAX_BODY_BYTES = 64 * 1024;
export const TOO_LONG = "body-too-long";

/** @throws UsageError for another content type, for what does not parse, and, with the code `TOO_LONG`, for what is too long. */
export async function jsonBody(c: Context): Promise<unknown> {
  if (!c.req.header("content-type")?.startsWith("application/json"))
    throw new UsageError(
      "bad-command",
      unexpected("the content type", "application/json", c.req.header("content-type")),
    );
  const text = await boundedBody(c);
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError("bad-command", "expected the body to be JSON, and it does not parse");
  }
}

async function boundedBody(c: Context): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of (c.req.raw.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > MAX_BODY_BYTES) throw new UsageError(TOO_LONG, `a body may have ${MAX_BODY_BYTES} bytes, and no more`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}
