/**
 * A snapshot of a cluster's shared state, as a file: a header line, the lines of `coordination-service/snapshot.ts`,
 * and a digest of all of them. It is written and read in parts.
 *
 *     {"format":"coterie-snapshot","version":1,"cluster":"demo","member":2,"at":1795450000000,"revision":1207,"salvaged":null}
 *     {"digest":2166136261,"data":{"version":1,"revision":1207,…}}
 *     {"map":"stock","keys":["apples"],"values":[…]}
 *     sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { UsageError } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import { list, natural, nullable, oneOf, problem, type Shape, struct, text } from "../../core/shape.ts";
import { MAX_MEMBERS } from "../../protocols/consensus/family/replicated-log.ts";
import { replicaDefaults } from "../../protocols/service/coordination-service/replica.ts";
import {
  beginReading,
  beginWriting,
  endReading,
  nextChunk,
  readText,
} from "../../protocols/service/coordination-service/snapshot.ts";
import type { Data } from "../../protocols/service/coordination-service/state.ts";
import { dataProblem } from "../../protocols/service/coordination-service/state-shape.ts";

const FORMAT = "coterie-snapshot";
const VERSION = 1;
const MAX_HEADER_BYTES = 65_536;

/** The content of the first line. */
export interface SnapshotHeader {
  readonly cluster: string;
  /** The member whose replica was saved. */
  readonly member: NodeId;
  /** When the state was current, in milliseconds since the Unix epoch. */
  readonly at: number;
  readonly revision: number;
  /** How the snapshot was salvaged. Null if it was saved from a running cluster and is therefore linearizable. */
  readonly salvaged: Salvage | null;
}

interface Salvage {
  /** The members whose folders were available, and the voters. */
  readonly folders: readonly NodeId[];
  readonly voters: readonly NodeId[];
  /** How many entries at the end of the log may not have been committed. */
  readonly uncertain: number;
}

const ids = list(natural, MAX_MEMBERS) as Shape<readonly NodeId[]>;
const headerShape = struct<SnapshotHeader & { format: string; version: number }>({
  format: oneOf(FORMAT),
  version: natural,
  cluster: text(1_000),
  member: natural,
  at: natural,
  revision: natural,
  salvaged: nullable(struct<Salvage>({ folders: ids, voters: ids, uncertain: natural })),
});

/** The content of a snapshot file. */
export interface Snapshot {
  readonly header: SnapshotHeader;
  readonly data: Data;
}

/**
 * Returns the bytes of the file as an iterable that can be read more than once.
 * @param data must not change
 * @param pause awaited between two parts
 */
export const snapshotFile = (
  header: SnapshotHeader,
  data: Data,
  pause = (): Promise<void> => Promise.resolve(),
): AsyncIterable<Uint8Array> => ({
  async *[Symbol.asyncIterator]() {
    const hash = createHash("sha256");
    const first = Buffer.from(`${JSON.stringify({ format: FORMAT, version: VERSION, ...header })}\n`);
    hash.update(first);
    yield first;
    const writing = beginWriting(0, data, 0);
    for (let isOver = false; !isOver; ) {
      const { chunk, isLast } = nextChunk(writing, replicaDefaults.chunkChars);
      hash.update(chunk.bytes);
      yield chunk.bytes;
      isOver = isLast;
      await pause();
    }
    yield Buffer.from(digestLine(hash.digest("hex")));
  },
});

const digestLine = (digest: string): string => `sha256 ${digest}\n`;
const DIGEST_BYTES = digestLine("0".repeat(64)).length;

/**
 * @param name the snapshot's name in errors
 * @throws UsageError `bad-snapshot` if the data is not a snapshot, is truncated, was modified, or comes from a later
 *   release
 */
export async function readSnapshot(
  bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  name: string,
): Promise<Snapshot> {
  const refuse = (why: string): never => {
    throw new UsageError("bad-snapshot", `expected ${name} to be a snapshot of a cluster, ${why}`);
  };
  const hash = createHash("sha256");
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const reading = beginReading();
  let header: SnapshotHeader | null = null;
  let begun = "";
  let held: Uint8Array = new Uint8Array(0);
  let wrong: string | null = null;
  /** Reads the lines. Errors in the lines are reported only if the digest is correct. */
  const read = (text: string): void => {
    try {
      readText(reading, text);
    } catch (error) {
      wrong ??= (error as Error).message;
    }
  };
  for await (const part of bytes) {
    const all = Buffer.concat([held, part]);
    const end = Math.max(0, all.length - DIGEST_BYTES);
    held = all.subarray(end);
    hash.update(all.subarray(0, end));
    const come = decoder.decode(all.subarray(0, end), { stream: true });
    if (header !== null) {
      read(come);
      continue;
    }
    begun += come;
    const at = begun.indexOf("\n");
    if (at < 0 && begun.length <= MAX_HEADER_BYTES) continue;
    header = headerIn(begun.slice(0, Math.max(0, at)), refuse);
    read(begun.slice(at + 1));
  }
  header ??= headerIn(begun.split("\n")[0] as string, refuse);
  const digest = Buffer.from(held).toString("latin1");
  if (!/^sha256 [0-9a-f]{64}\n$/.test(digest)) return refuse("but its end is missing");
  if (digest !== digestLine(hash.digest("hex"))) return refuse("but it was altered: its digest differs");
  if (reading.rest !== "") wrong ??= "its last line is incomplete";
  wrong ??= dataProblem(reading.data);
  if (wrong !== null) return refuse(`but it is invalid: ${wrong}`);
  endReading(reading);
  if (header.revision !== reading.data.keyspace.revision) return refuse("but its two revisions differ");
  return { header, data: reading.data };
}

function headerIn(line: string, refuse: (why: string) => never): SnapshotHeader {
  const first = parsed(line);
  const { format, version, ...header } = (first ?? {}) as SnapshotHeader & { format?: unknown; version?: unknown };
  if (format !== FORMAT) return refuse("but it has no snapshot header");
  if (version !== VERSION)
    return refuse(`in format version ${VERSION}, got version ${version}: use the release that wrote it`);
  const wrong = problem(headerShape, first, "the first line");
  return wrong === null ? header : refuse(`but it is invalid: ${wrong}`);
}

/** @throws UsageError as for `readSnapshot`, and if the file cannot be read */
export async function readSnapshotFile(path: string): Promise<Snapshot> {
  try {
    return await readSnapshot(createReadStream(path, { highWaterMark: 1_048_576 }), path);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError("cannot-read", `cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
