/** What an engine cannot do of what is promised, and why: docs/reference/engines.md shows the same table. */
import { expect } from "vitest";
import { outages } from "./outages.ts";
import { restores } from "./restores.ts";

/** They are killed, paused and cut off from each other by tests of their own. */
const NO_ENGINE = "no engine to be away from";
const OWN_BACKUPS = "a cluster founded from a backup is another one";

export interface Exception {
  readonly engine: string;
  /** As the conformance suite names it. */
  readonly promise: string;
  /** What its user is told instead. Null: there is nothing to try. */
  readonly error: RegExp | null;
  readonly reason: string;
}

export const exceptions: readonly Exception[] = [
  ...outages.map(({ name }) => ({ engine: "members", promise: name, error: null, reason: NO_ENGINE })),
  ...restores.map(({ name }) => ({ engine: "members", promise: name, error: null, reason: OWN_BACKUPS })),
  {
    engine: "members",
    promise: "what others have put there ends no process: it is refused where it is read",
    error: /nothing writes past members/,
    reason: "nothing writes past them",
  },
];

/** All of them but those of which there is nothing to try. */
export const triedOn = <P extends { readonly name: string }>(engine: string, all: readonly P[]): P[] =>
  all.filter(
    ({ name }) => !exceptions.some((each) => each.engine === engine && each.promise === name && each.error === null),
  );

/** As it is listed that it does not. */
export async function asListed(engine: string, promise: string, checked: Promise<void>): Promise<void> {
  const exception = exceptions.find((each) => each.engine === engine && each.promise === promise);
  if (exception === undefined || exception.error === null) await checked;
  else await expect(checked).rejects.toThrow(exception.error);
}
