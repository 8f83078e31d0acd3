/**
 * Writes a cluster's trace to a file as it arrives. The cluster never waits for the disk. Entries that do not fit into
 * the queue are counted and replaced by a gap entry.
 */
import { createWriteStream, openSync } from "node:fs";
import { EnvironmentError, UsageError } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import { wallClock } from "../../runtime/platform/wall-clock.ts";
import type { TraceEntry, TraceHeader } from "../../trace/entry.ts";

/** Writes a trace file. */
export interface Recorder {
  /** Records an entry from a node, as a line of JSON. */
  write(node: NodeId, line: string): void;
  /**
   * Writes the queued entries and ignores later ones.
   * @returns the number of entries in the file
   */
  close(): Promise<number>;
}

export interface RecorderOptions {
  readonly file: string;
  /** Whether an existing file may be overwritten. This must be explicit, because a recording cannot be repeated. */
  readonly force: boolean;
  readonly header: TraceHeader;
  /** Called once if the disk fails. No more entries are recorded after that. */
  readonly onFailure: (error: EnvironmentError) => void;
  /** The maximum size of the queue for the disk. */
  readonly maxQueueBytes?: number;
}

const MAX_QUEUE_BYTES = 32 * 1024 * 1024;

/**
 * Opens the file immediately.
 * @throws UsageError if the file cannot be opened
 */
export function record({ file, force, header, onFailure, maxQueueBytes = MAX_QUEUE_BYTES }: RecorderOptions): Recorder {
  const out = createWriteStream(file, { fd: opened(file, force) });
  const dropped = new Map<NodeId, number>();
  let written = 0;
  let phase: "open" | "closed" | "failed" = "open";
  const closed = new Promise<void>((resolve) => out.on("close", resolve));

  out.on("error", (error) => {
    if (phase === "failed") return;
    phase = "failed";
    onFailure(
      new EnvironmentError("cannot-record", `cannot record to ${file} any further: ${error.message}`, { cause: error }),
    );
  });

  function put(line: string): void {
    out.write(`${line}\n`);
    written += 1;
  }
  function tellGap(node: NodeId): void {
    const count = dropped.get(node);
    if (count === undefined) return;
    dropped.delete(node);
    const gap: TraceEntry = { at: wallClock(), node, kind: "gap", dropped: count };
    put(JSON.stringify(gap));
  }

  out.write(`${JSON.stringify(header)}\n`);
  return {
    write(node, line) {
      if (phase !== "open") return;
      // After the first lost entry, keep dropping entries until half the queue is free, so that there are few gaps.
      const room = dropped.size > 0 ? maxQueueBytes / 2 : maxQueueBytes;
      if (out.writableLength > room) return void dropped.set(node, (dropped.get(node) ?? 0) + 1);
      tellGap(node);
      put(line);
    },
    async close() {
      if (phase === "open") {
        for (const node of dropped.keys()) tellGap(node);
        phase = "closed";
        out.end();
      }
      await closed;
      return written;
    },
  };
}

function opened(file: string, force: boolean): number {
  try {
    return openSync(file, force ? "w" : "wx");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why =
      code === "EEXIST"
        ? `expected --record to name a new file, but ${file} already exists: use a new name, or overwrite it with --force`
        : `expected --record to name a file that can be written, got ${file} (${code ?? message})`;
    throw new UsageError("bad-argument", why);
  }
}
