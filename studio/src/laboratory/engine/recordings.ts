/** Trace files that somebody opens: recordings of live clusters, of the simulator, counterexamples. */
import { UsageError } from "../../../../src/core/errors.ts";
import { protocolOf } from "../../../../src/experiment/recording.ts";
import { readTrace, type Trace } from "../../../../src/trace/file.ts";
import { MAX_BYTES, MAX_OPENED } from "./limits.ts";

/** @throws UsageError that names the file, and the line where there is one */
export function opened(name: string, text: string): Trace {
  try {
    if (text.length > MAX_BYTES)
      throw new UsageError("bad-trace", `expected at most ${MAX_BYTES} bytes, got ${text.length}`);
    const trace = readTrace(text, { maxEntries: MAX_OPENED });
    if (trace.entries.length === 0) throw new UsageError("bad-trace", "expected events, got a header alone");
    protocolOf(trace.header); // Which the registry has to know.
    return trace;
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError("bad-trace", `${name}: ${error.message}`);
    throw error;
  }
}
