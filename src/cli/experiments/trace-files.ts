/** Reads and writes trace files, and writes traces as images. */

import { closeSync, existsSync, writeSync } from "node:fs";
import { isProtocolFile, loadProtocol } from "../../cluster/protocol-file.ts";
import { UsageError } from "../../core/errors.ts";
import { drawnAs } from "../../protocols/message-inks.ts";
import type { TraceEntry, TraceHeader } from "../../trace/entry.ts";
import { excerptOf } from "../../trace/excerpt.ts";
import { type ReadTrace, readTrace, type Trace, traceLines } from "../../trace/file.ts";
import { drawSvg } from "../../trace/picture/svg.ts";
import { contentOf, opened } from "../files.ts";

/**
 * Reads a trace, and loads its protocol if that is a file below the working directory.
 * @param file `-` for stdin
 * @throws UsageError if the file cannot be read or is not a trace
 */
export async function readTraceFile(file: string): Promise<ReadTrace> {
  const content = contentOf(file === "-" ? 0 : file, "the trace", "bad-trace");
  try {
    const trace = readTrace(content);
    const { protocol } = trace.header;
    const isBelow = isProtocolFile(protocol) && protocol.startsWith("./");
    if (isBelow && existsSync(protocol)) await loadProtocol(protocol); // A trace must not run code from elsewhere.
    return trace;
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(error.code, `${file}: ${error.message}`);
    throw error;
  }
}

/** @throws UsageError if the file cannot be written */
export function writeTraceFile(file: string, header: TraceHeader, entries: readonly TraceEntry[]): void {
  const lines = traceLines(header);
  writeParts(file, "--trace", function* parts() {
    yield lines.header;
    for (let at = 0; at < entries.length; at += LINES_AT_ONCE)
      yield entries
        .slice(at, at + LINES_AT_ONCE)
        .map((entry) => lines.entry(entry))
        .join("");
  });
}

/** @throws UsageError if the file cannot be written */
export function writeSvgFile(file: string, trace: Trace): void {
  writeParts(file, "--svg", () => [drawSvg(excerptOf(trace), drawnAs(trace.header.protocol))]);
}

const LINES_AT_ONCE = 10_000;

function writeParts(file: string, word: string, parts: () => Iterable<string>): void {
  const open = opened(word, file, "w");
  try {
    for (const part of parts()) writeSync(open, part);
  } finally {
    closeSync(open);
  }
}
