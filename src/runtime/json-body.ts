/** Reads a request body as JSON. The body must be short, unless the reader provides a budget for long ones. */
import type { Context } from "hono";
import { EnvironmentError, UsageError, unexpected } from "../core/errors.ts";

const MAX_BODY_BYTES = 64 * 1024;
/** The error code for a body that is too long. */
export const TOO_LONG = "body-too-long";

/** A memory budget for long bodies, shared by all requests that are being read. */
export class BodyRoom {
  readonly #capacity: number;
  #taken = 0;

  constructor(
    readonly maxBytes: number,
    /** The maximum total size of all bodies that are being read. */
    capacity: number,
  ) {
    this.#capacity = capacity;
  }

  /**
   * Reserves this many bytes.
   * @returns whether there was room for them
   */
  take(bytes: number): boolean {
    if (this.#taken + bytes > this.#capacity) return false;
    this.#taken += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#taken -= bytes;
  }
}

/**
 * Reads and parses the body.
 * @param room the budget for long bodies
 * @throws UsageError if the content type is not JSON, the body is not UTF-8 or does not parse, or parsing would round
 * an integer; with code `TOO_LONG` if the body is too long; EnvironmentError `too-many-bodies` if the budget is used up
 */
export async function jsonBody(c: Context, room: BodyRoom | null = null): Promise<unknown> {
  if (!c.req.header("content-type")?.startsWith("application/json"))
    throw new UsageError(
      "bad-command",
      unexpected("the content type", "application/json", c.req.header("content-type")),
    );
  const text = textOf(await boundedBody(c, room));
  const rounded = roundedNumberIn(text);
  if (rounded !== null)
    throw new UsageError(
      "bad-command",
      `expected integers that a double can represent, got ${rounded}: send it as a string`,
    );
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError("bad-command", "expected the body to be valid JSON");
  }
}

/** Matches the opening quote of a string, or a number. Strings are then skipped to their end, so the scan is linear. */
const TOKEN = /"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/** Matches integers that might be rounded. A double represents every integer below 10^15 exactly. */
const LONG = /^-?\d{16,}$/;

/** Returns the first integer in JSON text that parsing would round, such as a 64-bit id, or null if there is none. */
function roundedNumberIn(text: string): string | null {
  if (!/\d{16}/.test(text)) return null;
  TOKEN.lastIndex = 0;
  for (let found = TOKEN.exec(text); found !== null; found = TOKEN.exec(text)) {
    const [token] = found;
    if (token === '"') TOKEN.lastIndex = endOfString(text, found.index);
    else if (LONG.test(token) && isRounded(token)) return token.slice(0, MAX_DIGITS);
  }
  return null;
}

const isRounded = (whole: string): boolean => whole.length > MAX_DIGITS || BigInt(whole) !== BigInt(Number(whole));

const MAX_DIGITS = 40;

/** Returns the position after the closing quote. */
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let slashes = 0;
    while (text[quote - 1 - slashes] === "\\") slashes += 1;
    if (slashes % 2 === 0) return quote + 1;
  }
  return text.length;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function textOf(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new UsageError("bad-command", "expected the body to be valid UTF-8");
  }
}

async function boundedBody(c: Context, room: BodyRoom | null): Promise<Buffer> {
  const maxBytes = room?.maxBytes ?? MAX_BODY_BYTES;
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  let taken = 0;
  try {
    for await (const piece of (c.req.raw.body ?? []) as AsyncIterable<Uint8Array>) {
      bytes += piece.length;
      if (bytes > maxBytes) throw new UsageError(TOO_LONG, `expected a body of at most ${maxBytes} bytes`);
      const more = bytes > MAX_BODY_BYTES ? bytes - taken : 0;
      if (room?.take(more) === false)
        throw new EnvironmentError("too-many-bodies", "too many large requests are in progress: retry in a moment");
      taken += more;
      pieces.push(piece);
    }
    return Buffer.concat(pieces);
  } finally {
    room?.giveBack(taken);
  }
}
