/**
 * By which version of the state machine an entry of the log is meant: the highest one of a member that has opened a session before it.
 * So what is applied anew of a release before does what it did then, at every replica.
 */
import { isOwn } from "./operations.ts";
import type { Data, MachineState } from "./state.ts";

/**
 * Version 5: states and results of machines are plain data, or are refused. What a command of keys replaces or deletes counts for the
 * room that it takes, and an operation in parts has room of its own.
 */
const EXACT = 5;
/** Version 6: what has keys that JSON drops is no plain data either, and `apply` gives a list of two, not anything of which two can be taken. */
const THOROUGH = 6;
/** Version 7: the keyspace bounds its history without compacting it. */
const TRIMMED = 7;

export const isExact = ({ version = 0 }: Pick<Data, "version">): boolean => version >= EXACT;
export const isThorough = ({ version = 0 }: Pick<Data, "version">): boolean => version >= THOROUGH;
export const isTrimmed = ({ version = 0 }: Pick<Data, "version">): boolean => version >= TRIMMED;

/** What waits for machines that are not defined here is meant as it was until now. States are from here on as a snapshot holds them. */
export function raiseVersion(data: Data, version: number): void {
  const before = data.version ?? 0;
  if (version <= before) return;
  const raised = [EXACT, THOROUGH].filter((each) => before < each && each <= version);
  if (raised.length > 0)
    for (const [at, machine] of data.machines.values.entries()) {
      if (isOwn(data.machines.keys[at] as string)) continue;
      const waiting = machine.pending?.length ?? 0;
      if (waiting > 0 && raised.includes(EXACT)) machine.inexact = waiting;
      if (waiting > 0 && raised.includes(THOROUGH)) machine.lax = waiting;
      machine.state = asSaved(machine.state);
    }
  data.version = version;
}

/** Of the commands that wait: the version by which each of them is meant, and whether the state is as a snapshot holds it after that one. */
export function meaningsOf({ version = 0 }: Data, { pending, inexact = 0, lax = 0 }: MachineState) {
  return (pending ?? []).map((command, at) => ({
    command,
    version: at < inexact ? EXACT - 1 : at < lax ? THOROUGH - 1 : version,
    isLast: at === inexact - 1 || at === lax - 1,
  }));
}

/** What stands in a snapshot for it. */
export function asSaved(state: unknown): unknown {
  const text = JSON.stringify(state) as string | undefined;
  return text === undefined ? null : JSON.parse(text);
}
