/** A search that came to nothing of what it speaks of shows nothing, whatever its verdict. What is violated was reached. */
import { expect } from "vitest";
import { isReached, type Reach } from "../../src/check/reach.ts";

/** @param what events and handlers, as parts call them: `entered`, `receive requestVote`. */
export function reaching<F extends { readonly verdict: string; readonly reach: Reach }>(
  found: F,
  ...what: readonly string[]
): F {
  const missing = what.filter((name) => !isReached(found.reach, name) && !hasRun(found.reach, name));
  if (found.verdict !== "violated") expect(missing).toEqual([]);
  return found;
}

function hasRun({ handlers }: Reach, name: string): boolean {
  const [kind, handler] = name.split(" ");
  return Object.keys(handlers).some(
    (ran) => ran === name || (ran.startsWith(`${kind} `) && ran.endsWith(`.${handler}`)),
  );
}
