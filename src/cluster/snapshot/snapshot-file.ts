/**
 * A snapshot of what a cluster shares, as a file of three lines: what it is, the data as JSON, and a digest of both.
 *
 *     {"format":"coterie-snapshot","version":1,"cluster":"demo","member":2,"at":1795450000000,"revision":1207,"salvaged":null}
 *     {"revision":1207,"sessions":[],"maps":{"keys":["stock"],"values":[…]},…}
 *     sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
 */
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { UsageError } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import { list, natural, nullable, oneOf, problem, type Shape, struct, text } from "../../core/shape.ts";
import { MAX_MEMBERS, MAX_SNAPSHOT_BYTES } from "../../protocols/consensus/family/replicated-log.ts";
import type { Data } from "../../protocols/service/coordination-service/state.ts";
import { dataProblem } from "../../protocols/service/coordination-service/state-shape.ts";

const FORMAT = "coterie-snapshot";
const VERSION = 1;
/** Beside the data. A log takes no larger snapshot. */
const MAX_HEADER_BYTES = 65_536;
export const MAX_FILE_BYTES = MAX_SNAPSHOT_BYTES + MAX_HEADER_BYTES;

/** Of the first line. */
export interface SnapshotHeader {
  readonly cluster: string;
  /** Whose replica it is. */
  readonly member: NodeId;
  /** When it was so, in milliseconds since 1970. */
  readonly at: number;
  readonly revision: number;
  /** Null: of a cluster that ran, and linearizable. */
  readonly salvaged: Salvage | null;
}

interface Salvage {
  /** The members whose folders were there, and those that voted. */
  readonly folders: readonly NodeId[];
  readonly voters: readonly NodeId[];
  /** Entries at the end of the log that may not have been committed. */
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

export interface Snapshot {
  readonly header: SnapshotHeader;
  readonly data: Data;
}

/** @param data as JSON. @throws UsageError `too-large` for what no log would take */
export function snapshotText(header: SnapshotHeader, data: string): string {
  if (Buffer.byteLength(data) > MAX_SNAPSHOT_BYTES - MAX_HEADER_BYTES)
    throw new UsageError("too-large", `expected at most ${MAX_SNAPSHOT_BYTES - MAX_HEADER_BYTES} bytes in a snapshot`);
  const lines = `${JSON.stringify({ format: FORMAT, version: VERSION, ...header })}\n${data}\n`;
  return `${lines}${digestLine(lines)}`;
}

const digestLine = (lines: string | Buffer): string => `sha256 ${createHash("sha256").update(lines).digest("hex")}\n`;
const DIGEST_BYTES = digestLine("").length;

/** @param name for errors. @throws UsageError `bad-snapshot` for what is none, is cut off, was altered, or is of a later release */
export function readSnapshot(bytes: Buffer, name: string): Snapshot {
  const refuse = (why: string): never => {
    throw new UsageError("bad-snapshot", `expected ${name} to be a snapshot of a cluster, ${why}`);
  };
  const end = bytes.indexOf("\n");
  const first = parsed(bytes.toString("utf8", 0, Math.min(end < 0 ? bytes.length : end, MAX_HEADER_BYTES)));
  const { format, version } = (first ?? {}) as { format?: unknown; version?: unknown };
  if (format !== FORMAT) return refuse("and it does not begin as one does");
  if (version !== VERSION)
    return refuse(
      `of version ${VERSION} of the format, and it is of version ${version}: use the release that wrote it`,
    );
  const lines = bytes.subarray(0, Math.max(0, bytes.length - DIGEST_BYTES));
  const digest = bytes.toString("latin1", lines.length);
  if (!/^sha256 [0-9a-f]{64}\n$/.test(digest)) return refuse("and its end is missing: it was cut off");
  if (digest !== digestLine(lines)) return refuse("and it was altered: its digest is another");
  const data = parsed(lines.toString("utf8", end + 1));
  const wrong = problem(headerShape, first, "the first line") ?? dataProblem(data);
  if (wrong !== null) return refuse(`and it is none: ${wrong}`);
  const {
    format: _format,
    version: _version,
    ...header
  } = first as SnapshotHeader & { format: string; version: number };
  if (header.revision !== (data as Data).revision) return refuse("and its two revisions differ");
  return { header, data: data as Data };
}

/** @throws UsageError as `readSnapshot` does, and for a file that cannot be read */
export function readSnapshotFile(path: string): Snapshot {
  let bytes: Buffer;
  try {
    const { size } = statSync(path);
    if (size > MAX_FILE_BYTES)
      throw new UsageError(
        "bad-snapshot",
        `expected ${path} to be a snapshot of a cluster, and it is too large for one`,
      );
    bytes = readFileSync(path);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError("cannot-read", `cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
  return readSnapshot(bytes, path);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
