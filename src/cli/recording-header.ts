/** The first line of what is recorded of real processes. */
import type { NodeId } from "../core/protocol.ts";
import type { TraceHeader } from "../trace/header.ts";

export function recordingHeader(protocol: string, nodes: readonly NodeId[]): TraceHeader {
  return {
    kind: "trace",
    version: 1,
    madeBy: "cluster",
    protocol,
    form: "node",
    variant: null,
    options: {},
    nodes,
    seed: null,
    violation: null,
  };
}
