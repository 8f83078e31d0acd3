/** A run as its algorithm wants to be shown, by its line in the registry. */
import { protocolNamed, rowsOf } from "../protocols/index.ts";
import type { Trace } from "../trace/file.ts";
import { type Presented, presented } from "../trace/presented.ts";

/** @throws UsageError for a recording of what is not in the registry. */
export function asShown(trace: Trace): Presented {
  const { protocol, nodes, options } = trace.header;
  const { presentation } = protocolNamed(protocol);
  return presented(trace, { ...presentation, rows: rowsOf(presentation, nodes, options) });
}
