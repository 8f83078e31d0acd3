/** The first line of a trace, as far as simulator, checker and real processes write the same. */
import type { NodeId } from "../core/protocol.ts";
import { type BehaviourName, onProcesses } from "../protocols/byzantine.ts";
import type { TraceHeader } from "../trace/header.ts";

/** As a header has them. */
export const liarsIn = (byzantine: NonNullable<TraceHeader["byzantine"]> = {}): Pick<TraceHeader, "byzantine"> =>
  Object.keys(byzantine).length === 0 ? {} : { byzantine };

/** The first line of what is recorded of real processes. */
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
