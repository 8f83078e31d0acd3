/**
 * Snapshots of the data, as lines of JSON that are split into chunks. The replica writes and reads a snapshot one chunk
 * at a time, so it never stores a snapshot as a single value and never blocks for long. A snapshot contains the data as
 * it was when writing began. `asItStands` copies the tables and lists, but shares the values in them that later
 * operations only ever replace. It also copies the values that operations change in place.
 *
 *     {"digest":2166136261,"data":{"version":1,"keyspace":{"revision":1207,…},…}}  the first line: everything but lists and tables
 *     {"table":"locks","keys":["x"],"values":[…]}                                  names in a table
 *     {"list":"keys","values":[["map/settings/a",7,9,2,"true","0"],…]}             keys, the history of keys, or sessions
 */
import { Chunk } from "../../../core/chunk.ts";
import { InvariantViolation } from "../../../core/errors.ts";
import { append, copyOfTable, entriesOf, keysOf, type Table, tableOf, valuesOf } from "../keyspace/table.ts";
import type { KeyEvent, KeyValue } from "../keyspace/vocabulary.ts";
import { copyOf } from "./member-list.ts";
import { type Data, emptyData, type Session } from "./state.ts";

/** The approximate length of a line. */
const LINE_CHARS = 16_384;

/** Returns the tables of the data that are written with their names. */
const tablesIn = ({ keyspace: { leases }, locks, barriers, queues, machines, groups }: Data) => ({
  leases,
  locks,
  barriers,
  queues,
  machines,
  groups,
});

type Line =
  | { digest: number; data: object }
  | { table: keyof ReturnType<typeof tablesIn>; keys: string[]; values: unknown[] }
  | { list: "sessions"; values: Session[] }
  | { list: "keys"; values: PackedEntry[] }
  | { list: "history"; values: PackedEvent[] };

/** A key with its value, without the names of its fields. */
type PackedEntry = [key: string, create: number, mod: number, version: number, value: string, lease: string];
type PackedEvent = [entry: PackedEntry, prev: PackedEntry | null];

const packed = ({ key, create, mod, version, value, lease }: KeyValue): PackedEntry => [
  key,
  create,
  mod,
  version,
  value,
  lease,
];
const unpacked = ([key, create, mod, version, value, lease]: PackedEntry): KeyValue => ({
  key,
  create,
  mod,
  version,
  value,
  lease,
});

const packedEvent = ({ kv, prev }: KeyEvent): PackedEvent => [packed(kv), prev && packed(prev)];
const unpackedEvent = ([entry, prev]: PackedEvent): KeyEvent => {
  const kv = unpacked(entry);
  return { type: kv.version === 0 ? "delete" : "put", kv, prev: prev && unpacked(prev) };
};

/** Returns an item of a list as it is written. */
function inLine(list: string, item: unknown): unknown {
  if (list === "keys") return packed(item as KeyValue);
  return list === "history" ? packedEvent(item as KeyEvent) : item;
}

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
  /** The name of a table, or of a list. */
  name: string;
  /** Null for a list. */
  keys: string[] | null;
  values: unknown[];
  at: number;
}

/** Begins to write a snapshot. @param data must not be changed until the snapshot has been written */
export function beginWriting(index: number, data: Data, digest: number): Writing {
  const { keyspace, sessions, ...others } = data;
  const { keys, history, ...ofKeys } = keyspace;
  const tables: Record<string, Table<unknown>> = tablesIn(data);
  const without = (of: object): object => Object.fromEntries(Object.entries(of).filter(([name]) => !(name in tables)));
  const text = `${JSON.stringify({ digest, data: { ...without(others), keyspace: without(ofKeys) } })}\n`;
  const sections: Section[] = [
    ...Object.entries({ keys: valuesOf(keys), history, sessions }).map(
      ([name, values]): Section => ({ name, keys: null, values, at: 0 }),
    ),
    ...Object.entries(tables).map(
      ([name, table]): Section => ({ name, keys: keysOf(table), values: valuesOf(table), at: 0 }),
    ),
  ];
  return { index, sections: sections.filter(({ values }) => values.length > 0), text, chars: text.length };
}

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
  const { name, keys, values, at } = current;
  let [items, end] = ["", at];
  while (end < values.length && items.length < LINE_CHARS) {
    const item = JSON.stringify(keys === null ? inLine(name, values[end]) : values[end]);
    items += end === at ? item : `,${item}`;
    end += 1;
  }
  const head = keys === null ? `"list":"${name}"` : `"table":"${name}","keys":${JSON.stringify(keys.slice(at, end))}`;
  const line = `{${head},"values":[${items}]}\n`;
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
    const { keyspace, ...others } = line.data as Data;
    reading.digest = line.digest;
    Object.assign(data, others);
    Object.assign(data.keyspace, keyspace);
    return;
  }
  if ("table" in line) {
    const table: Table<unknown> | undefined = tablesIn(data)[line.table];
    if (table === undefined) throw new InvariantViolation("bad-snapshot", `unknown table ${line.table}`);
    append(
      table,
      line.keys.map((key, at) => [key, line.values[at]]),
    );
  } else if (line.list === "keys")
    append(
      data.keyspace.keys,
      line.values.map((entry) => [entry[0], unpacked(entry)]),
    );
  else if (line.list === "history") for (const event of line.values) data.keyspace.history.push(unpackedEvent(event));
  else if (line.list === "sessions") for (const session of line.values) data.sessions.push(session);
  else throw new InvariantViolation("bad-snapshot", `unknown line ${JSON.stringify(line).slice(0, 40)}`);
}

const tableWith = <V>(table: Table<V>, copy: (value: V) => V): Table<V> =>
  tableOf([...entriesOf(table)].map(([name, value]) => [name, copy(value)]));

/** Returns a copy that later operations do not change. */
export function asItStands(data: Data): Data {
  const { keyspace, sessions, lives, members, locks, barriers, queues, groups } = data;
  return {
    ...data,
    keyspace: {
      ...keyspace,
      keys: copyOfTable(keyspace.keys),
      history: [...keyspace.history],
      leases: tableWith(keyspace.leases, (lease) => ({ ...lease, keys: [...lease.keys] })),
    },
    sessions: sessions.map((session) => ({
      ...session,
      replies: [...session.replies],
      staged: session.staged && { ...session.staged },
    })),
    lives: { ...lives },
    members: members && copyOf(members),
    locks: tableWith(locks, (lock) => ({ ...lock, holders: [...lock.holders], waiters: [...lock.waiters] })),
    barriers: tableWith(barriers, (barrier) => ({ ...barrier, arrivals: [...barrier.arrivals] })),
    queues: tableWith(queues, ({ items, taken, takers }) => ({
      items: [...items],
      taken: [...taken],
      takers: [...takers],
    })),
    groups: tableWith(groups, (group) => ({ ...group, members: group.members.map((member) => ({ ...member })) })),
    machines: tableWith(data.machines, (machine) => ({
      ...machine,
      state: asSaved(machine.state), // The application may change the state in place, although `apply` should not.
      pending: [...machine.pending],
    })),
  };
}

function asSaved(state: unknown): unknown {
  const text = JSON.stringify(state) as string | undefined;
  return text === undefined ? null : JSON.parse(text);
}
