/** Opens trace files: recordings of live clusters, runs from the simulator, and counterexamples. */
import { UsageError } from "../../../../src/core/errors.ts";
import { protocolOf } from "../../../../src/experiment/recording.ts";
import { originOf } from "../../../../src/trace/excerpt.ts";
import { type ReadTrace, readTrace, type Trace } from "../../../../src/trace/file.ts";
import type { Part } from "./answers.ts";
import { MAX_OPENED, MAX_TEXT } from "./limits.ts";

export interface Recording extends ReadTrace {
  /** A sentence about the part of the file that was not read. Empty if all of it was read. */
  readonly left: string;
}

/**
 * Parses a trace file.
 * @param bytes the size of the whole file; `text` may contain only its beginning
 * @param onEntries called periodically with the number of entries so far
 * @throws UsageError that names the file and, if there is one, the line
 */
export function opened(
  name: string,
  text: string,
  bytes = 0,
  onEntries: (entries: number) => void = () => {},
  most = MAX_TEXT,
): Recording {
  try {
    const read = text.length > most ? text.slice(0, most) : text;
    const isBeginning = text.length > most || bytes > most;
    const trace = readTrace(read, { maxEntries: Number.POSITIVE_INFINITY, onEntries });
    if (trace.entries.length === 0) throw new UsageError("bad-trace", "expected events, got only a header");
    protocolOf(trace.header); // Throws if the protocol is not registered.
    const left = isBeginning
      ? `Only the first ${megabytes(most)} of the file's ${megabytes(Math.max(bytes, text.length))} are opened. To open its end, run: (head -n 1 FILE; tail -n ${MAX_OPENED} FILE) > end.jsonl`
      : "";
    return { ...trace, left };
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError("bad-trace", `${name}: ${error.message}`);
    throw error;
  }
}

export interface OpenedPart {
  readonly trace: Trace;
  readonly part: Part | null;
  /** Sentences about parts of the file that are not shown. */
  readonly omissions: readonly string[];
}

/** Returns the part of a recording that a link names. @throws UsageError if there is no such part */
export function partOf(recording: Recording, named: string, most = MAX_OPENED): OpenedPart {
  const { header, entries, clocks, torn, left } = recording;
  const of = Math.ceil(entries.length / most);
  const number = named === "" ? 1 : /^\d{1,9}$/.test(named) ? Number(named) : 0;
  if (number < 1 || number > of)
    throw new UsageError("bad-argument", `expected a part of the recording from 1 to ${of}, got ${named}`);
  const [from, to] = [(number - 1) * most, Math.min(number * most, entries.length)];
  const cut =
    torn && left === "" ? ["The file ends within a line, as if it were still being written. The rest is shown."] : [];
  const origin = originOf(header, entries);
  const minutes = (index: number): string => (((entries[index]?.at ?? 0) - origin) / 60_000).toFixed(1);
  const shown = `Entries ${count(from + 1)} to ${count(to)} of ${count(entries.length)} are shown, from minute ${minutes(from)} to ${minutes(to - 1)}.`;
  const unknown = "The states before this part are not known, so it cannot be forked, and no property is checked.";
  return {
    trace: of === 1 ? recording : { header, entries: entries.slice(from, to), clocks: clocks.slice(from, to) },
    part: of === 1 ? null : { number, of },
    omissions: [
      ...(left === "" ? [] : [left]),
      ...cut,
      ...(of === 1 ? [] : [number === 1 ? shown : `${shown} ${unknown}`]),
    ],
  };
}

const count = (number: number): string => number.toLocaleString("en");
const megabytes = (bytes: number): string => `${Number((bytes / 1e6).toFixed(1)).toLocaleString("en")} MB`;
