/**
 * The journal's file format: a header, followed by batches. A batch holds records that become durable together,
 * protected by one checksum:
 *
 *    header   "COTERIE-JOURNAL\n" | version u32 | salt u32 | crc of these u32
 *    batch    crc u32 | length u32 | number u48 | records      the crc covers everything after it, seeded with the salt
 *    record   slot u16 | kind u8 | length u32 | payload
 *
 * Why batches have checksums, but records do not: a batch is written only once the previous one is durable. A broken
 * batch with an intact one after it was therefore durable once and was damaged later, while a broken batch at the end
 * is a write torn by a crash. Checksums on single records would not allow this distinction: after a power failure, the
 * second of two unconfirmed records can be intact while the first is not. An empty batch, written when the journal is
 * closed cleanly and when it is next opened, shows that everything before it was durable. Batches are numbered to
 * detect a missing one. The salt distinguishes them from leftovers of an earlier file on the disk.
 *
 * Why payloads use the wire codec and each slot declares its shape: every record that fits its shape has an encoding,
 * and the bytes decode to that record, both by construction. The shape is stored as JSON with the slot's name. A later
 * version of a program can therefore decode old records with the shape they were written with, and check whether they
 * fit its own.
 */
import { crc32 } from "node:zlib";
import type { Chunk } from "../../core/chunk.ts";
import { EnvironmentError, UsageError } from "../../core/errors.ts";
import type { ShapeNode } from "../../core/shape.ts";
import { MalformedBytes, Reader, Writer } from "../wire.ts";

const MAGIC = "COTERIE-JOURNAL\n";
const VERSION = 1;
/** The size of the header of a journal file. */
export const HEADER_BYTES = MAGIC.length + 12;
const BATCH_BYTES = 14;
const RECORD_BYTES = 7;
/** The highest slot number. */
export const MAX_SLOT = 0xffff;

/**
 * `declare` gives a slot its name and the shape of the records that follow. `compact` replaces all of the slot's
 * earlier records.
 */
export type RecordKind = "declare" | "append" | "compact";
const kinds: readonly RecordKind[] = ["declare", "append", "compact"];

/** A record, with the position of its payload in the surrounding bytes. */
export interface Entry {
  readonly slot: number;
  readonly kind: RecordKind;
  readonly at: number;
  readonly length: number;
  /** The numbers of the chunks that the record refers to. Set only for records written by this process. */
  readonly chunks?: readonly number[];
}

/** The content of a slot's declaration. */
export interface Declaration {
  readonly name: string;
  readonly shape: ShapeNode;
}

/** Encodes the header of a journal file. */
export function header(salt: number): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES);
  bytes.write(MAGIC, "latin1");
  bytes.writeUInt32LE(VERSION, MAGIC.length);
  bytes.writeUInt32LE(salt, MAGIC.length + 4);
  bytes.writeUInt32LE(crc32(bytes.subarray(0, HEADER_BYTES - 4)), HEADER_BYTES - 4);
  return bytes;
}

/** The value that replaces a chunk in a record. */
export interface Reference {
  readonly number: number;
  readonly length: number;
  readonly checksum: number;
}

/** Assigns references to chunks. */
export interface References {
  referenceTo(chunk: Chunk): Reference;
}

/** Writes records and collects the chunks that they refer to. */
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

/** Reads records and collects the chunks that they refer to. */
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

/** The size of the largest buffer that is reused for a later batch. */
const MAX_KEPT_BYTES = 1024 * 1024;

/** A group of records that will be written together. */
export class Batch {
  readonly entries: Entry[] = [];
  /** Callbacks for when the batch is durable. */
  readonly waiting: (() => void)[] = [];
  readonly #writer: RecordWriter;

  /** @param before a finished batch whose buffer can be reused, which avoids the cost of growing a new one */
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

  /** Reserves space for this many more bytes at once. Growing the buffer by doubling would copy most of it. */
  reserve(bytes: number): void {
    this.#writer.room(bytes);
  }

  /**
   * Adds a record whose payload is written by `write`. Adds nothing if `write` throws.
   * @param references assigns the references that replace chunks in the record
   */
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

  /** Returns the current end of the batch, to be passed to `takeBackTo`. */
  mark(): { readonly count: number; readonly end: number } {
    return { count: this.entries.length, end: this.#writer.position };
  }

  /** Removes everything added since the mark. */
  takeBackTo({ count, end }: { readonly count: number; readonly end: number }): void {
    this.entries.length = count;
    this.#writer.position = end;
  }

  payload({ at, length }: Entry): Buffer {
    return this.#writer.buffer.subarray(at, at + length);
  }

  /** Returns the bytes to write to the file. */
  sealed(number: number, salt: number): Buffer {
    const bytes = this.#writer.buffer.subarray(0, this.#writer.position);
    bytes.writeUInt32LE(bytes.length - BATCH_BYTES, 4);
    bytes.writeUIntLE(number, 8, 6);
    bytes.writeUInt32LE(crc32(bytes.subarray(4), salt), 0);
    return bytes;
  }
}

/** Encodes the name and shape of a slot. */
export function writeDeclaration({ name, shape }: Declaration, into: Writer): void {
  into.text(JSON.stringify({ name, shape }), Number.MAX_SAFE_INTEGER);
}

/** Decodes the name and shape of a slot. */
export function readDeclaration(payload: Buffer): Declaration {
  return JSON.parse(new Reader(payload).text(Number.MAX_SAFE_INTEGER)) as Declaration;
}

/** The content of a journal file. */
export interface Scan {
  readonly salt: number;
  /** The number of the last batch, or 0 if there is none. */
  readonly number: number;
  /** Whether the last batch is empty or missing. If so, nothing before the end can be a torn write. */
  readonly isMarked: boolean;
  readonly entries: readonly Entry[];
  /** The end of the readable part. Anything after it is a torn write. */
  readonly end: number;
}

/**
 * Reads a journal's bytes.
 * @param file the file's name for error messages
 * @throws EnvironmentError if it is not a journal, or if it is damaged anywhere except at its end
 */
export function scan(bytes: Buffer, file: string): Scan {
  const salt = readHeader(bytes, file);
  const entries: Entry[] = [];
  let [at, number, isMarked] = [HEADER_BYTES, 0, true];
  while (at < bytes.length) {
    const length = batchLength(bytes, at, salt);
    if (length === null) {
      const next = nextBatch(bytes, at + 1, salt, number);
      if (next !== null) throw damaged(file, at, `it is unreadable there, but readable again from byte ${next} on`);
      break;
    }
    const found = bytes.readUIntLE(at + 8, 6);
    if (found !== number + 1) throw damaged(file, at, `write ${found} follows write ${number}`);
    const before = entries.length;
    if (!readRecords(bytes, at + BATCH_BYTES, at + length, entries)) throw damaged(file, at, "its records are invalid");
    isMarked = entries.length === before;
    [at, number] = [at + length, found];
  }
  return { salt, number, isMarked, entries, end: at };
}

function readHeader(bytes: Buffer, file: string): number {
  const isJournal = bytes.length >= HEADER_BYTES && bytes.toString("latin1", 0, MAGIC.length) === MAGIC;
  if (!isJournal || bytes.readUInt32LE(HEADER_BYTES - 4) !== crc32(bytes.subarray(0, HEADER_BYTES - 4)))
    throw damaged(file, 0, "it has no journal header");
  const version = bytes.readUInt32LE(MAGIC.length);
  if (version !== VERSION)
    throw new UsageError(
      "journal-version",
      `expected ${file} to be a journal of version ${VERSION}, got version ${version}: run the program that wrote it`,
    );
  return bytes.readUInt32LE(MAGIC.length + 4);
}

/** Returns the length of the batch that starts at `at`, or null if the batch is incomplete. */
function batchLength(bytes: Buffer, at: number, salt: number): number | null {
  if (at + BATCH_BYTES > bytes.length) return null;
  const length = BATCH_BYTES + bytes.readUInt32LE(at + 4);
  if (at + length > bytes.length) return null;
  return crc32(bytes.subarray(at + 4, at + length), salt) === bytes.readUInt32LE(at) ? length : null;
}

/**
 * Returns the offset of the next complete batch that starts at or after `from` and was written after batch `last`.
 * Returns null if there is none.
 */
function nextBatch(bytes: Buffer, from: number, salt: number, last: number): number | null {
  const most = last + 1 + (bytes.length - from) / BATCH_BYTES;
  for (let at = from; at + BATCH_BYTES <= bytes.length; at++) {
    const number = bytes.readUIntLE(at + 8, 6);
    if (number > last && number <= most && batchLength(bytes, at, salt) !== null) return at;
  }
  return null;
}

/** Adds the records between `at` and `end`. Returns false if they do not fill that range exactly. */
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

/**
 * Returns the error for a damaged journal. Damage is never repaired by dropping records, because a node that forgets a
 * promise would break it.
 */
export function damaged(file: string, at: number, why: string): EnvironmentError {
  return new EnvironmentError(
    "damaged-journal",
    `the journal ${file} is damaged at byte ${at}: ${why}. The node does not start, because it might break promises that it has recorded. Treat the file as lost: for a member started with join(), \`coterie member replace\` makes a new folder. Never restore an older copy: it lacks later promises`,
  );
}
