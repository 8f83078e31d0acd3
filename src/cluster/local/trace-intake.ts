/** Follows one member's trace for as long as its process runs, and reconnects when the connection breaks. */
import { get } from "node:http";
import type { NodeId } from "../../core/protocol.ts";
import { wallClock } from "../../runtime/platform/wall-clock.ts";
import type { TraceEntry } from "../../trace/entry.ts";
import { eachLine } from "./lines.ts";

const MAX_LINE_LENGTH = 1024 * 1024;
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 1_000;

/**
 * Follows a member's trace. Each connection begins with the start of the process, if that was recent, and with a view.
 * Entries between two connections may be missing, so the second one begins with a gap.
 * @returns a function that stops following. Its promise resolves when the last connection has ended, because the
 *   process has ended or `signal` was aborted. Entries that have arrived by then are still reported
 */
export function listenToTrace(
  admin: string,
  node: NodeId,
  onEntry: (entry: TraceEntry, line: string) => void,
  signal?: AbortSignal,
): () => Promise<void> {
  let ended = false;
  let wasConnected = false;
  let isOpen = false;
  let isOver = (): void => {};
  const over = new Promise<void>((resolve) => {
    isOver = resolve;
  });
  let retryMs = FIRST_RETRY_MS;
  let retry: NodeJS.Timeout | undefined;

  function connect(): void {
    const call = get(`${admin}/trace`, { agent: false, ...(signal && { signal }) }, (response) => {
      if (response.statusCode !== 200) return void response.destroy();
      retryMs = FIRST_RETRY_MS;
      const gap: TraceEntry = { at: wallClock(), node, kind: "gap", dropped: 1 };
      if (wasConnected) onEntry(gap, JSON.stringify(gap));
      wasConnected = true;
      eachLine(response, MAX_LINE_LENGTH, (line) => {
        const entry = entryOf(line, node);
        if (entry !== null) onEntry(entry, line);
      });
    });
    call.on("error", () => {}); // A "close" event follows.
    isOpen = true;
    call.on("close", () => {
      isOpen = false;
      if (ended) return isOver();
      retry = setTimeout(connect, retryMs);
      retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
    });
  }

  connect();
  return () => {
    ended = true;
    clearTimeout(retry);
    if (!isOpen) isOver();
    return over;
  };
}

/**
 * Validates the fields that this side relies on. The page checks the rest. A schema is not used, because there are
 * thousands of entries per second.
 */
function entryOf(line: string, node: NodeId): TraceEntry | null {
  try {
    const entry = JSON.parse(line) as TraceEntry | null;
    const isSound = entry?.node === node && Number.isFinite(entry.at) && typeof entry.kind === "string";
    return isSound ? entry : null;
  } catch {
    return null; // A crash has cut off the line.
  }
}
