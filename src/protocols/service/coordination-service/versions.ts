/**
 * By which version of the state machine an entry of the log is meant: the highest one of a member that has opened a session before it.
 * So what is applied anew of a release before does what it did then, at every replica.
 */
import { isOwn } from "./operations.ts";
import type { Data } from "./state.ts";

/**
 * Version 5: states and results of machines are plain data, or are refused. What a command of keys replaces or deletes counts for the
 * room that it takes, and an operation in parts has room of its own.
 */
const EXACT = 5;

export const isExact = ({ version = 0 }: Pick<Data, "version">): boolean => version >= EXACT;

/** What waits for machines that are not defined here is meant as it was until now. States are from here on as a snapshot holds them. */
export function raiseVersion(data: Data, version: number): void {
  if (version <= (data.version ?? 0)) return;
  if (!isExact(data) && version >= EXACT)
    for (const [at, machine] of data.machines.values.entries()) {
      if (isOwn(data.machines.keys[at] as string)) continue;
      if (machine.pending !== null && machine.pending.length > 0) machine.inexact = machine.pending.length;
      machine.state = asSaved(machine.state);
    }
  data.version = version;
}

/** What stands in a snapshot for it. */
export function asSaved(state: unknown): unknown {
  const text = JSON.stringify(state) as string | undefined;
  return text === undefined ? null : JSON.parse(text);
}
