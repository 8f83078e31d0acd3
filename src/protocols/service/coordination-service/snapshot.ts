/**
 * Snapshots of the data, as lines of JSON that are split into chunks. The replica writes and reads a snapshot one chunk
 * at a time, so it never stores a snapshot as a single value and never blocks for long. A snapshot contains the data as
 * it was when writing began. `asItStands` copies the tables and lists, but shares the values in them that later
 * operations only ever replace. It also copies the values that operations change in place.
 *
 *     {"digest":2166136261,"data":{"version":1,"revision":1207,…}}                 the first line: everything but lists and tables
 *     {"map":"settings","keys":["a","b"],"values":[…]}                             keys of a map
 *     {"table":"locks","keys":["x"],"values":[…]}                                  names in another table
 *     {"list":"sessions","values":[…]}                                             sessions, or recent changes
 */
import { Chunk } from "../../../core/chunk.ts";
import { InvariantViolation } from "../../../core/errors.ts";
import { type BuiltInMachine, builtInOf, type MachineDefinitions } from "./machines.ts";
import { copyOf } from "./member-list.ts";
import { type Data, emptyData, type MachineState } from "./state.ts";
import {
  append,
  copyOfTable,
  emptyTable,
  enter,
  entriesOf,
  keysOf,
  lookUp,
  type Table,
  tableOf,
  valuesOf,
} from "./table.ts";

/** The approximate length of a line. */
const LINE_CHARS = 16_384;

const tables = ["counters", "locks", "barriers", "queues", "machines", "groups", "forgottenOf"] as const;
type TableName = (typeof tables)[number];

type Line =
  | { digest: number; data: object }
  | { map: string; keys: string[]; values: unknown[] }
  | { table: TableName; keys: string[]; values: unknown[] }
  | { list: "sessions" | "changes"; values: unknown[] };

/** A snapshot that is being written. */
export interface Writing {
  /** The log index of the snapshot. */
  index: number;
  /** The tables and lists that have not been completely written yet. */
  sections: Section[];
  /** Lines that are not in a chunk yet. */
  text: string;
  /** The total number of characters written. */
  chars: number;
}

interface Section {
  head: string;
  keys: string[] | null;
  values: unknown[];
  at: number;
}

/** Begins to write a snapshot. @param data must not be changed until the snapshot has been written */
export function beginWriting(index: number, data: Data, digest: number): Writing {
  const { maps, sessions, kept, counters, locks, barriers, queues, machines: states, groups, ...others } = data;
  const { changes, forgottenOf, ...keptOthers } = kept;
  const sections: Section[] = [
    ...[...entriesOf(maps)].map(([map, table]) => section(`"map":${JSON.stringify(map)}`, table)),
    ...Object.entries({ counters, locks, barriers, queues, machines: states, groups, forgottenOf }).map(
      ([name, table]) => section(`"table":"${name}"`, table as Table<unknown>),
    ),
    ...Object.entries({ sessions, changes }).map(
      ([name, values]): Section => ({ head: `"list":"${name}"`, keys: null, values, at: 0 }),
    ),
  ];
  const text = `${JSON.stringify({ digest, data: { ...others, kept: keptOthers } })}\n`;
  return { index, sections: sections.filter(({ values }) => values.length > 0), text, chars: text.length };
}

const section = (head: string, table: Table<unknown>): Section => ({
  head,
  keys: keysOf(table),
  values: valuesOf(table),
  at: 0,
});

/** Writes the next chunk. */
export function nextChunk(writing: Writing, maxChars: number): { chunk: Chunk; isLast: boolean } {
  while (writing.text.length < maxChars && writing.sections.length > 0) writeLine(writing);
  const end = endOfChunk(writing.text, maxChars);
  const chunk = Chunk.of(writing.text.slice(0, end));
  writing.text = writing.text.slice(end);
  return { chunk, isLast: writing.text === "" && writing.sections.length === 0 };
}

/**
 * Returns the end of the next chunk. A chunk never ends within a surrogate pair, because half a pair has no UTF-8 form.
 */
function endOfChunk(text: string, maxChars: number): number {
  const isHalf = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
  return maxChars < text.length && isHalf(text.charCodeAt(maxChars - 1)) ? maxChars + 1 : maxChars;
}

function writeLine(writing: Writing): void {
  const current = writing.sections[0] as Section;
  const { head, keys, values, at } = current;
  let [items, end] = ["", at];
  while (end < values.length && items.length < LINE_CHARS) {
    const item = JSON.stringify(values[end]);
    items += end === at ? item : `,${item}`;
    end += 1;
  }
  const names = keys === null ? "" : `"keys":${JSON.stringify(keys.slice(at, end))},`;
  const line = `{${head},${names}"values":[${items}]}\n`;
  writing.text += line;
  writing.chars += line.length;
  current.at = end;
  if (end === values.length) writing.sections.shift();
}

/** A snapshot that is being read. */
export interface Reading {
  data: Data;
  digest: number;
  /** An incomplete line at the end of the text read so far. */
  rest: string;
}

/** Begins to read a snapshot. */
export const beginReading = (): Reading => ({ data: emptyData(), digest: 0, rest: "" });

/** Reads the next part of a snapshot. @throws Error if the part is not valid */
export function readText(reading: Reading, text: string): void {
  const lines = text.split("\n");
  lines[0] = reading.rest + lines[0];
  reading.rest = lines.pop() as string;
  for (const line of lines) readLine(reading, JSON.parse(line) as Line);
}

/** Checks that the whole snapshot has been read. @throws InvariantViolation if the end is missing */
export function endReading({ rest }: Reading): void {
  if (rest !== "") throw new InvariantViolation("bad-snapshot", "expected a snapshot to end with a whole line");
}

function readLine(reading: Reading, line: Line): void {
  const { data } = reading;
  if ("digest" in line) {
    const { kept, ...others } = line.data as Data;
    reading.digest = line.digest;
    Object.assign(data, others);
    Object.assign(data.kept, kept);
  } else if ("list" in line) {
    const list: unknown[] = line.list === "sessions" ? data.sessions : data.kept.changes;
    for (const value of line.values) list.push(value);
  } else
    append(
      tableNamed(data, line),
      line.keys.map((key, at) => [key, line.values[at]]),
    );
}

function tableNamed(data: Data, line: { map: string } | { table: TableName }): Table<unknown> {
  if ("table" in line) {
    if (!tables.includes(line.table)) throw new InvariantViolation("bad-snapshot", `unknown table ${line.table}`);
    return line.table === "forgottenOf" ? data.kept.forgottenOf : data[line.table];
  }
  const known = lookUp(data.maps, line.map);
  if (known !== null) return known;
  const table = emptyTable<never>();
  enter(data.maps, line.map, table);
  return table;
}

const tableWith = <V>(table: Table<V>, copy: (value: V, name: string) => V): Table<V> =>
  tableOf([...entriesOf(table)].map(([name, value]) => [name, copy(value, name)]));

/** Returns a copy that later operations do not change. */
export function asItStands(data: Data, machines: MachineDefinitions): Data {
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
    maps: tableWith(maps, copyOfTable),
    kept: {
      ...kept,
      changes: [...kept.changes],
      forgottenOf: copyOfTable(kept.forgottenOf),
    },
    counters: copyOfTable(counters),
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

/** Copies a machine's state. The application may change the state in place, although `apply` should not. */
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
