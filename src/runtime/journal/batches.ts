/**
 * The journal's bytes: a header, then batches. A batch is what became durable together, behind one checksum:
 *
 *     header   "COTERIE-JOURNAL\n" | version u32 | salt u32 | crc of these u32
 *     batch    crc u32 | length u32 | number u48 | records      the crc is over all that follows it, seeded with the salt
 *     record   slot u16 | kind u8 | length u32 | payload
 *
 * Why batches and not records are checksummed: a batch is written only when the one before it is durable, so a broken
 * one with a whole one after it had been confirmed and was damaged later, while a broken one at the end is a write that
 * a crash has torn. Of single records this would not be so: a power cut may leave the second of two unconfirmed ones
 * whole and the first not. An empty batch at a clean end, and at the next beginning, keeps what is before it out of that
 * doubt. Batches are numbered, so one that is missing is noticed; the salt keeps what an earlier file has left on the
 * disk from being taken for a part of this one.
 *
 * Why payloads are in the wire codec and each slot says its shape: a record that fits its shape has bytes, and these
 * bytes mean that record, both by construction. The shape is written down beside the name, as JSON, so a later version
 * of a program reads what an earlier one wrote with the shape that it had then, and looks whether it fits its own.
 */
import { crc32 } from "node:zlib";
import type { Chunk } from "../../core/chunk.ts";
import { EnvironmentError, UsageError } from "../../core/errors.ts";
import type { ShapeNode } from "../../core/shape.ts";
import { MalformedBytes, Reader, Writer } from "../wire.ts";

const MAGIC = "COTERIE-JOURNAL\n";
const VERSION = 1;
export const HEADER_BYTES = MAGIC.length + 12;
const BATCH_BYTES = 14;
const RECORD_BYTES = 7;
/** The most that a record's slot can be. */
export const MAX_SLOT = 0xffff;

/** `declare` gives a slot its name and the shape of the records that follow; `compact` replaces those before it. */
export type RecordKind = "declare" | "append" | "compact";
const kinds: readonly RecordKind[] = ["declare", "append", "compact"];

/** One record: where its payload is in the bytes around it. */
export interface Entry {
  readonly slot: number;
  readonly kind: RecordKind;
  readonly at: number;
  readonly length: number;
  /** The numbers of the chunks that it refers to. Only set for records written by this process. */
  readonly chunks?: readonly number[];
}

/** What a slot's declaration says. */
export interface Declaration {
  readonly name: string;
  readonly shape: ShapeNode;
}

export function header(salt: number): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES);
  bytes.write(MAGIC, "latin1");
  bytes.writeUInt32LE(VERSION, MAGIC.length);
  bytes.writeUInt32LE(salt, MAGIC.length + 4);
  bytes.writeUInt32LE(crc32(bytes.subarray(0, HEADER_BYTES - 4)), HEADER_BYTES - 4);
  return bytes;
}

/** What a record contains in place of a chunk. */
export interface Reference {
  readonly number: number;
  readonly length: number;
  readonly checksum: number;
}

/** Assigns references to chunks. */
export interface References {
  referenceTo(chunk: Chunk): Reference;
}

/** Writes records, and collects the chunks that they refer to. */
export class RecordWriter extends Writer {
  references: References | null = null;
  named: number[] = [];

  override chunk(value: Chunk): void {
    const { number, length, checksum } = (this.references as References).referenceTo(value);
    this.natural(number);
    this.natural(length);
    this.natural(checksum);
    this.named.push(number);
  }
}

/** Reads records, and collects the chunks that they refer to. */
export class RecordReader extends Reader {
  readonly named: number[] = [];
  readonly #chunkAt: (reference: Reference) => Chunk;

  constructor(buffer: Buffer, chunkAt: (reference: Reference) => Chunk) {
    super(buffer);
    this.#chunkAt = chunkAt;
  }

  override chunk(maxBytes: number): Chunk {
    const reference = { number: this.natural(), length: this.natural(), checksum: this.natural() };
    if (reference.length > maxBytes) throw new MalformedBytes("a chunk is larger than its shape allows");
    this.named.push(reference.number);
    return this.#chunkAt(reference);
  }
}

/** Of the room of a batch, for a later one. */
const MAX_KEPT_BYTES = 1024 * 1024;

/** Records on their way to the disk. */
export class Batch {
  readonly entries: Entry[] = [];
  /** Called once it is durable. */
  readonly waiting: (() => void)[] = [];
  readonly #writer: RecordWriter;

  /** @param before one that is done with, whose room is used again: to grow anew is to copy, and leaves much to be collected. */
  constructor(before: Batch | null = null) {
    const isOfUse = before !== null && before.#writer.buffer.length <= MAX_KEPT_BYTES;
    this.#writer = isOfUse ? before.#writer : new RecordWriter(256);
    this.#writer.position = BATCH_BYTES;
  }

  get bytes(): number {
    return this.#writer.position;
  }

  get isEmpty(): boolean {
    return this.entries.length === 0;
  }

  /** Room for so much more, taken at once: to grow by doubling is to copy most of it. */
  reserve(bytes: number): void {
    this.#writer.room(bytes);
  }

  /** Adds a record with the payload that `write` writes; adds nothing if that throws. @param references for chunks */
  add(slot: number, kind: RecordKind, write: (into: Writer) => void, references: References | null = null): void {
    const writer = this.#writer;
    writer.references = references;
    writer.named = [];
    const start = writer.position;
    const at = start + RECORD_BYTES;
    try {
      writer.room(RECORD_BYTES);
      writer.position = at;
      write(writer);
    } catch (error) {
      writer.position = start;
      throw error;
    }
    const length = writer.position - at;
    writer.buffer.writeUInt16LE(slot, start);
    writer.buffer[start + 2] = kinds.indexOf(kind);
    writer.buffer.writeUInt32LE(length, start + 3);
    const { named: chunks } = writer;
    this.entries.push(chunks.length === 0 ? { slot, kind, at, length } : { slot, kind, at, length, chunks });
  }

  /** What it holds, to be taken back to. */
  mark(): { readonly count: number; readonly end: number } {
    return { count: this.entries.length, end: this.#writer.position };
  }

  /** As if what was added since had not been. */
  takeBackTo({ count, end }: { readonly count: number; readonly end: number }): void {
    this.entries.length = count;
    this.#writer.position = end;
  }

  payload({ at, length }: Entry): Buffer {
    return this.#writer.buffer.subarray(at, at + length);
  }

  /** The bytes for the file. */
  sealed(number: number, salt: number): Buffer {
    const bytes = this.#writer.buffer.subarray(0, this.#writer.position);
    bytes.writeUInt32LE(bytes.length - BATCH_BYTES, 4);
    bytes.writeUIntLE(number, 8, 6);
    bytes.writeUInt32LE(crc32(bytes.subarray(4), salt), 0);
    return bytes;
  }
}

export function writeDeclaration({ name, shape }: Declaration, into: Writer): void {
  into.text(JSON.stringify({ name, shape }), Number.MAX_SAFE_INTEGER);
}

export function readDeclaration(payload: Buffer): Declaration {
  return JSON.parse(new Reader(payload).text(Number.MAX_SAFE_INTEGER)) as Declaration;
}

/** What a journal's bytes hold. */
export interface Scan {
  readonly salt: number;
  /** Of the last batch; 0 if there is none. */
  readonly number: number;
  /** Whether the last batch is an empty one, or there is none: nothing before it can be taken for torn. */
  readonly isMarked: boolean;
  readonly entries: readonly Entry[];
  /** Where the readable part ends. What follows, if anything, is a torn write. */
  readonly end: number;
}

/**
 * Reads a journal's bytes; `file` is its name for errors.
 * @throws EnvironmentError if it is no journal, or damaged elsewhere than at its end.
 */
export function scan(bytes: Buffer, file: string): Scan {
  const salt = readHeader(bytes, file);
  const entries: Entry[] = [];
  let [at, number, isMarked] = [HEADER_BYTES, 0, true];
  while (at < bytes.length) {
    const length = batchLength(bytes, at, salt);
    if (length === null) {
      const next = nextBatch(bytes, at + 1, salt, number);
      if (next !== null) throw damaged(file, at, `and from byte ${next} on it can be read again`);
      break;
    }
    const found = bytes.readUIntLE(at + 8, 6);
    if (found !== number + 1) throw damaged(file, at, `write ${found} comes after write ${number}`);
    const before = entries.length;
    if (!readRecords(bytes, at + BATCH_BYTES, at + length, entries)) throw damaged(file, at, "its records are none");
    isMarked = entries.length === before;
    [at, number] = [at + length, found];
  }
  return { salt, number, isMarked, entries, end: at };
}

function readHeader(bytes: Buffer, file: string): number {
  const isJournal = bytes.length >= HEADER_BYTES && bytes.toString("latin1", 0, MAGIC.length) === MAGIC;
  if (!isJournal || bytes.readUInt32LE(HEADER_BYTES - 4) !== crc32(bytes.subarray(0, HEADER_BYTES - 4)))
    throw damaged(file, 0, "it does not begin as a journal does");
  const version = bytes.readUInt32LE(MAGIC.length);
  if (version !== VERSION)
    throw new UsageError(
      "journal-version",
      `expected ${file} to be a journal of version ${VERSION}, got version ${version}: run the program that wrote it`,
    );
  return bytes.readUInt32LE(MAGIC.length + 4);
}

/** The length of the batch that begins at `at`, or null if no whole one does. */
function batchLength(bytes: Buffer, at: number, salt: number): number | null {
  if (at + BATCH_BYTES > bytes.length) return null;
  const length = BATCH_BYTES + bytes.readUInt32LE(at + 4);
  if (at + length > bytes.length) return null;
  return crc32(bytes.subarray(at + 4, at + length), salt) === bytes.readUInt32LE(at) ? length : null;
}

/** Where a whole batch begins, from `from` on, that was written after batch `last`; null if there is none. */
function nextBatch(bytes: Buffer, from: number, salt: number, last: number): number | null {
  const most = last + 1 + (bytes.length - from) / BATCH_BYTES;
  for (let at = from; at + BATCH_BYTES <= bytes.length; at++) {
    const number = bytes.readUIntLE(at + 8, 6);
    if (number > last && number <= most && batchLength(bytes, at, salt) !== null) return at;
  }
  return null;
}

/** Adds the records from `at` to `end`; false if they do not fill that space. */
function readRecords(bytes: Buffer, at: number, end: number, into: Entry[]): boolean {
  let start = at;
  while (start + RECORD_BYTES <= end) {
    const kind = kinds[bytes[start + 2] as number];
    const length = bytes.readUInt32LE(start + 3);
    const payload = start + RECORD_BYTES;
    if (kind === undefined || payload + length > end) return false;
    into.push({ slot: bytes.readUInt16LE(start), kind, at: payload, length });
    start = payload + length;
  }
  return start === end;
}

/** A node that forgot what it has promised would break its word, so this is not repaired by leaving something out. */
export function damaged(file: string, at: number, why: string): EnvironmentError {
  return new EnvironmentError(
    "damaged-journal",
    `the journal ${file} is damaged: it cannot be read at byte ${at}, ${why}. The node does not start, for it could go back on its word. The file counts as lost: \`coterie member replace\` makes a member that serves by name a new folder. Never put an older copy in its place, which has forgotten what was promised since`,
  );
}
