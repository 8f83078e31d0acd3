/**
 * A snapshot is written a piece at a time, with each entry that is applied, so that no entry waits for all of it. What is written is the
 * data as they stood when it began: lists are copied then, and what is in them is never changed in place, only replaced; but for members of groups, which are copied.
 */
import { beginWriting, isWritten, type Writing, write } from "./json-fragments.ts";
import { type BuiltInMachine, builtInOf, type MachineDefinitions } from "./machines.ts";
import { copyOf } from "./member-list.ts";
import type { Data, MachineState } from "./state.ts";
import type { Table } from "./table.ts";

export interface Saving {
  /** The place in the log that the snapshot stands for. */
  index: number;
  writing: Writing;
}

/** Of each entry: of a small state all at once. */
const MIN_CHARS = 65_536;
/** Characters written for each one that the log grows by. If the next snapshot is due before this one is done, it waits. */
const PACE = 4;

export const beginSaving = (index: number, data: Data, digest: number, machines: MachineDefinitions): Saving => ({
  index,
  writing: beginWriting({ data: asItStands(data, machines), digest }),
});

/** @param chars of the entry that has just been applied. @returns the snapshot, once all of it is written. */
export function goOnSaving({ writing }: Saving, chars: number): string | null {
  write(writing, Math.max(MIN_CHARS, PACE * chars));
  return isWritten(writing) ? writing.text : null;
}

const tableWith = <V>({ keys, values }: Table<V>, copy: (value: V, name: string) => V): Table<V> => ({
  keys: [...keys],
  values: values.map((value, at) => copy(value, keys[at] as string)),
});

/** A copy that later operations do not change. */
function asItStands(data: Data, machines: MachineDefinitions): Data {
  const { sessions, lives, members, maps, kept, counters, locks, barriers, queues, groups } = data;
  return {
    ...data,
    sessions: sessions.map((session) => ({
      ...session,
      replies: [...session.replies],
      staged: session.staged && { ...session.staged },
    })),
    lives: { ...lives },
    members: members && copyOf(members),
    maps: tableWith(maps, ({ keys, values }) => ({ keys: [...keys], values: [...values] })),
    kept: {
      ...kept,
      changes: [...kept.changes],
      forgottenOf: tableWith(kept.forgottenOf, (revision) => revision),
    },
    counters: tableWith(counters, (value) => value),
    locks: tableWith(locks, (lock) => ({ ...lock, holders: [...lock.holders], waiters: [...lock.waiters] })),
    barriers: tableWith(barriers, (barrier) => ({ ...barrier, arrivals: [...barrier.arrivals] })),
    queues: tableWith(queues, ({ items, taken, takers }) => ({
      items: [...items],
      taken: [...taken],
      takers: [...takers],
    })),
    groups: tableWith(groups, (group) => ({ ...group, members: group.members.map((member) => ({ ...member })) })),
    machines: tableWith(data.machines, (machine, name) => machineAsItStands(machine, builtInOf(machines, name))),
  };
}

/** What the application gave may change in its hands, though `apply` should give the next state and leave this one. */
function machineAsItStands(machine: MachineState, builtIn: BuiltInMachine | null): MachineState {
  const { state, isDefined, pending } = machine;
  return {
    ...machine,
    state: builtIn !== null && isDefined ? builtIn.copyOf(state) : asSaved(state),
    pending: [...pending],
  };
}

function asSaved(state: unknown): unknown {
  const text = JSON.stringify(state) as string | undefined;
  return text === undefined ? null : JSON.parse(text);
}
