/**
 * A journal's chunks. Each has its own file in the journal's folder, `chunk-NUMBER`. Records refer to it by number,
 * length and checksum. A chunk is written only once, even if several records refer to it. Its file becomes durable
 * before the first batch that refers to it, and is deleted after the batch that removes the last reference. Files left
 * behind by a crash are deleted when the journal is next opened.
 */
import { crc32 } from "node:zlib";
import { Chunk } from "../../core/chunk.ts";
import { EnvironmentError } from "../../core/errors.ts";
import type { Reference } from "./batches.ts";
import type { Place } from "./journal-file.ts";

const PREFIX = "chunk-";
const nameOf = (number: number): string => `${PREFIX}${number}`;

export class ChunkFiles {
  readonly #place: Place;
  /** The numbers of all files in the folder. */
  readonly #files: Set<number>;
  readonly #references = new WeakMap<Chunk, Reference>();
  readonly #unwritten = new Map<number, Chunk>();
  #next = 1;
  /** The total length of the chunks that have not yet been written. */
  waitingBytes = 0;

  /** @param names the names of the files in the folder */
  constructor(place: Place, names: readonly string[]) {
    this.#place = place;
    const numbers = names.filter((name) => name.startsWith(PREFIX)).map((name) => Number(name.slice(PREFIX.length)));
    this.#files = new Set(numbers);
    for (const number of numbers) this.#next = Math.max(this.#next, number + 1);
  }

  get isEmpty(): boolean {
    return this.#files.size === 0;
  }

  /** Returns the reference to be stored in a record in place of the chunk. */
  referenceTo(chunk: Chunk): Reference {
    const known = this.#references.get(chunk);
    if (known !== undefined) return known;
    const reference = { number: this.#next++, length: chunk.length, checksum: crc32(chunk.bytes) };
    this.#references.set(chunk, reference);
    this.#unwritten.set(reference.number, chunk);
    this.waitingBytes += chunk.length;
    return reference;
  }

  chunkAt(reference: Reference): Chunk {
    const unwritten = this.#unwritten.get(reference.number);
    if (unwritten !== undefined) return unwritten;
    const chunk = storedChunk(reference, this.#place.path, (name) => this.#place.folder.read(name));
    this.#references.set(chunk, reference);
    return chunk;
  }

  /**
   * Writes the chunk with this number unless it has already been written. The chunk is durable once this resolves.
   * @returns the number of bytes written
   */
  async write(number: number): Promise<number> {
    const chunk = this.#unwritten.get(number);
    if (chunk === undefined) return 0;
    const { folder, path } = this.#place;
    const file = await folder.create(nameOf(number));
    this.#files.add(number);
    try {
      const { bytes } = chunk;
      await file.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), 0);
      await file.sync();
    } finally {
      await file.close();
    }
    this.#unwritten.delete(number);
    this.waitingBytes -= chunk.length;
    const reference = this.#references.get(chunk) as Reference;
    chunk.store(() => readChunk(reference, path, (name) => folder.read(name)));
    return chunk.length;
  }

  /**
   * Deletes the files of all other chunks. Ignores errors, because a file that is not deleted only wastes disk space.
   */
  async keep(numbers: ReadonlySet<number>): Promise<void> {
    for (const number of this.#files) {
      if (numbers.has(number)) continue;
      this.#files.delete(number);
      await this.#place.folder.remove(nameOf(number)).catch(() => {});
    }
  }
}

/**
 * Returns a chunk that is stored in a file.
 * @param read reads a whole file in the folder
 */
export const storedChunk = (reference: Reference, folder: string, read: (name: string) => Buffer): Chunk =>
  Chunk.stored(reference.length, () => readChunk(reference, folder, read));

function readChunk({ number, length, checksum }: Reference, folder: string, read: (name: string) => Buffer): Buffer {
  const name = nameOf(number);
  let bytes: Buffer;
  try {
    bytes = read(name);
  } catch (error) {
    throw new EnvironmentError("cannot-read-journal", `cannot read ${name} in ${folder}: ${String(error)}`, {
      cause: error,
    });
  }
  if (bytes.length === length && crc32(bytes) === checksum) return bytes;
  throw new EnvironmentError(
    "damaged-journal",
    `the journal in ${folder} is damaged: expected ${name} to have ${length} bytes and checksum ${checksum}, got ${bytes.length} bytes and checksum ${crc32(bytes)}. Treat the file as lost: for a member started with join(), \`coterie member replace\` makes a new folder`,
  );
}
