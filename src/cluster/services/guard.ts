/**
 * The resource's side of a lock or a leadership. A lock alone is not safe: its holder may be paused between checking its
 * grant and acting. So the resource remembers the highest token that it has seen and rejects lower ones.
 */
import { UsageError, unexpected } from "../../core/errors.ts";

/** The error of a token that is lower than an earlier one: its holder has been replaced by another. */
export class StaleToken extends UsageError {
  constructor(
    readonly token: number,
    readonly highest: number,
  ) {
    super("stale-token", `token ${token} is stale: token ${highest} has been seen, and its holder is the successor`);
  }
}

/**
 * Returns a function that rejects tokens lower than one accepted before. Call it where the resource is, in the same
 * transaction as the write. In SQL, use `UPDATE report SET body = $2, token = $1 WHERE id = $3 AND token <= $1`: zero
 * changed rows mean the same as the exception here.
 *
 * @example
 * const accept = guard();
 * accept(lock.token); // before each write
 * @param highest the highest token so far, if the resource has stored it. Default 0.
 * @throws UsageError if `highest` is not a token. The returned function throws StaleToken, or UsageError if its argument
 *   is not a token.
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
