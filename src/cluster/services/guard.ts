/**
 * Protects a resource that is used under a lock or leadership. A lock alone is not safe, because its holder may be
 * paused between checking its grant and acting. The resource therefore remembers the highest token that it has seen and
 * rejects lower ones.
 */
import { UsageError, unexpected } from "../../core/errors.ts";

/** Thrown for a token that is lower than an earlier one, which means that its holder has been replaced. */
export class StaleToken extends UsageError {
  constructor(
    readonly token: number,
    readonly highest: number,
  ) {
    super("stale-token", `token ${token} is stale: token ${highest} has already been accepted from a later holder`);
  }
}

/**
 * Returns a function that rejects tokens lower than the highest one accepted so far. Call it inside the resource, in
 * the same transaction as the write. In SQL, use
 * `UPDATE report SET body = $2, token = $1 WHERE id = $3 AND token <= $1`. If it changes no rows, the token is stale.
 *
 * @example
 * const accept = guard();
 * accept(lock.token); // before each write
 * @param highest the highest token so far, if the resource has stored it. Default: 0
 * @throws UsageError if `highest` is not a token. The returned function throws StaleToken, or UsageError if its
 *   argument is not a token
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
