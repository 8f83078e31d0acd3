/** The guarantees that an engine does not give, and why. docs/reference/engines.md shows the same table. */
import { expect } from "vitest";
import { outages } from "./outages.ts";
import { restores } from "./restores.ts";

/** Other tests kill and pause members of a cluster, and cut them off from each other. */
const NO_ENGINE = "does not depend on an engine";
const OWN_BACKUPS = "a cluster created from a backup is a new cluster";

export interface Exception {
  readonly engine: string;
  /** The name in the conformance suite. */
  readonly promise: string;
  /** The error that the user gets instead, or null if there is nothing to test. */
  readonly error: RegExp | null;
  readonly reason: string;
}

export const exceptions: readonly Exception[] = [
  ...outages.map(({ name }) => ({ engine: "members", promise: name, error: null, reason: NO_ENGINE })),
  ...restores.map(({ name }) => ({ engine: "members", promise: name, error: null, reason: OWN_BACKUPS })),
  {
    engine: "members",
    promise: "a value from another program does not end a process: only reads of it throw",
    error: /other programs cannot write to members/,
    reason: "other programs cannot write to members",
  },
];

/** All guarantees except those without a test for this engine. */
export const triedOn = <P extends { readonly name: string }>(engine: string, all: readonly P[]): P[] =>
  all.filter(
    ({ name }) => !exceptions.some((each) => each.engine === engine && each.promise === name && each.error === null),
  );

/** Checks that an unsupported guarantee fails with the listed error. */
export async function asListed(engine: string, promise: string, checked: Promise<void>): Promise<void> {
  const exception = exceptions.find((each) => each.engine === engine && each.promise === promise);
  if (exception === undefined || exception.error === null) await checked;
  else await expect(checked).rejects.toThrow(exception.error);
}
