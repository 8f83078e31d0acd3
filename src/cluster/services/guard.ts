/**
 * The resource's side of a lock or a leadership. No lock is safe by itself: a holder may be paused between looking at
 * its grant and acting on it. What is acted on remembers the highest token it has seen and turns lower ones away.
 */
import { UsageError, unexpected } from "../../core/errors.ts";

/** A token is lower than one that was seen before: its holder has been succeeded. */
export class StaleToken extends UsageError {
  constructor(
    readonly token: number,
    readonly highest: number,
  ) {
    super("stale-token", `token ${token} is stale: ${highest} has been seen, whoever holds that one is the successor`);
  }
}

/**
 * Accepts tokens that are not lower than one accepted before. It belongs where the resource is, and in the same
 * transaction as the write: `UPDATE report SET body = $2, token = $1 WHERE id = $3 AND token <= $1`, of which zero
 * changed rows say the same as the exception here.
 *
 * @example
 * const accept = guard();
 * accept(lock.token); // before each write
 * @param highest what was seen last, where the resource has kept it.
 * @throws by the function that is returned: StaleToken, or UsageError for what is not a token.
 */
export function guard(highest = 0): (token: number) => void {
  let seen = requireToken(highest);
  return (token) => {
    if (requireToken(token) < seen) throw new StaleToken(token, seen);
    seen = token;
  };
}

function requireToken(token: number): number {
  if (Number.isSafeInteger(token) && token >= 0) return token;
  throw new UsageError("bad-token", unexpected("the token", "a natural number", token));
}
