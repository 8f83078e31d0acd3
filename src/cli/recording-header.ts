/** The first line of what is recorded of real processes. */
import type { NodeId } from "../core/protocol.ts";
import { liarsIn } from "../experiment/simulation-report.ts";
import { type BehaviourName, onProcesses } from "../protocols/byzantine.ts";
import type { TraceHeader } from "../trace/header.ts";

export function recordingHeader(
  protocol: string,
  nodes: readonly NodeId[],
  liars: Readonly<Record<NodeId, BehaviourName>> = {},
): TraceHeader {
  const byzantine = Object.fromEntries(Object.entries(liars).map(([node, how]) => [node, onProcesses(how)]));
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
    ...liarsIn(byzantine),
    violation: null,
  };
}
