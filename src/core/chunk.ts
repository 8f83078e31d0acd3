/**
 * Chunks are immutable byte sequences. A protocol keeps large data, such as a snapshot, as a list of chunks, which it
 * sends, journals and reads one at a time. Once a chunk is durable in a journal, the driver may drop its bytes from
 * memory; `bytes` then reads them from disk. Two chunks are equal if their bytes are equal.
 *
 * A protocol must not use a chunk after it has replaced all records that contain it, because the driver then deletes
 * the chunk's file.
 */
declare class TextEncoder {
  encode(text: string): Uint8Array;
}
declare class TextDecoder {
  constructor(encoding: "utf-8", options: { ignoreBOM: boolean });
  decode(bytes: Uint8Array): string;
}
declare function btoa(binary: string): string;
declare function atob(base64: string): string;

/** The JSON form of a chunk, with its bytes in base64. */
interface ChunkJson {
  readonly $chunk: string;
}

/** An immutable sequence of bytes, for large data such as snapshots. */
export class Chunk {
  /** The length in bytes. */
  readonly length: number;
  #bytes: Uint8Array | null;
  #read: (() => Uint8Array) | null = null;

  /** Creates a chunk. @param bytes the content. The chunk keeps this array, so do not change it later */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.length = bytes.length;
  }

  /** Creates a chunk from a string, encoded as UTF-8. */
  static of(text: string): Chunk {
    return new Chunk(new TextEncoder().encode(text));
  }

  /** Creates a chunk whose bytes are read on each access. */
  static stored(length: number, read: () => Uint8Array): Chunk {
    const chunk = new Chunk(EMPTY);
    (chunk as { length: number }).length = length;
    chunk.store(read);
    return chunk;
  }

  /** Returns the bytes. Do not change them. @throws EnvironmentError if they are stored on disk and cannot be read */
  get bytes(): Uint8Array {
    return this.#bytes ?? (this.#read as () => Uint8Array)();
  }

  /** Returns the bytes decoded as UTF-8. */
  get text(): string {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.bytes); // Keep a leading U+FEFF.
  }

  /** Drops the bytes from memory. Only drivers call this. @param read a function that returns the same bytes */
  store(read: () => Uint8Array): void {
    this.#bytes = null;
    this.#read = read;
  }

  /** Returns the JSON form, in base64. `reviveChunk` restores the chunk. */
  toJSON(): ChunkJson {
    return { $chunk: base64Of(this.bytes) };
  }
}

const EMPTY = new Uint8Array(0);

/** Restores chunks from their JSON form. Pass this function to `JSON.parse` as the reviver. */
export function reviveChunk(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("$chunk" in value)) return value;
  const { $chunk: base64, ...others } = value;
  if (typeof base64 !== "string" || Object.keys(others).length > 0) return value;
  return new Chunk(Uint8Array.from(atob(base64), (unit) => unit.charCodeAt(0)));
}

/** Returns whether both chunks have the same bytes. */
export function isSameChunk(a: Chunk, b: Chunk): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  const [left, right] = [a.bytes, b.bytes];
  return left.every((byte, at) => byte === right[at]);
}

const STRIDE = 0x2000;

/** Encodes bytes in base64. */
export function base64Of(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += STRIDE) binary += String.fromCharCode(...bytes.subarray(at, at + STRIDE));
  return btoa(binary);
}
