/** Which members have no link with which nodes, and why, in words. */
import type { NodeId } from "../core/protocol.ts";
import type { Refused } from "../runtime/transport/identity.ts";

export interface NodeRefusals {
  readonly id: NodeId;
  /** None of a member that does not answer. */
  readonly refusals: readonly Refused[];
}

/** Below an empty line; nothing where nobody is refused. */
export function refusalLines(nodes: readonly NodeRefusals[]): string[] {
  const lines = nodes.flatMap(({ id, refusals }) =>
    refusals.map(({ node, reason, detail }) => `node ${id} has no link with node ${node}: ${reason}: ${detail}`),
  );
  return lines.length === 0 ? [] : ["", ...lines];
}
