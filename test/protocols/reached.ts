/**
 * Expects a search to reach given states. A search that does not reach the states it is about proves nothing, even if
 * it finds no violation. A violated property counts as reached.
 */
import { expect } from "vitest";
import { isReached, type Reach } from "../../src/check/reach.ts";

/** @param what names of events and handlers as the parts use them, for example `entered` or `receive requestVote` */
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

interface Counted {
  readonly property: { readonly name: string } | null;
  readonly verdict: string;
  readonly states: number;
}

/**
 * Expects a number of states and a verdict. A bug often changes the number of states as well. The test must then fail
 * because of the property. Otherwise an update of the number would hide the bug.
 */
export function expectStates(found: Counted, verdict: "holds" | "unknown", states: number): void {
  const violated = "a property is violated: fix the protocol, and leave the number of states as it is";
  expect(found.property?.name ?? null, violated).toBeNull();
  expect(found.verdict).toBe(verdict);
  const differs = "no property is violated, but runs differ: update the number once you can say why";
  expect(found.states, differs).toBe(states);
}
