/** What an engine cannot do of what is promised, and why: docs/engines.md shows the same table. */
import { expect } from "vitest";

export interface Exception {
  readonly engine: string;
  /** As the conformance suite names it. */
  readonly promise: string;
  /** What its user is told instead. */
  readonly error: RegExp;
  readonly reason: string;
}

export const exceptions: readonly Exception[] = [
  {
    engine: "members",
    promise: "what others have put there ends no process: it is refused where it is read",
    error: /nothing writes past members/,
    reason: "nothing writes past them",
  },
];

/** As it is listed that it does not. */
export async function asListed(engine: string, promise: string, checked: Promise<void>): Promise<void> {
  const exception = exceptions.find((each) => each.engine === engine && each.promise === promise);
  if (exception === undefined) await checked;
  else await expect(checked).rejects.toThrow(exception.error);
}
