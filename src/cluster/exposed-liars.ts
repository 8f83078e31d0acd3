/**
 * Handles proofs that a node is Byzantine: counts them, and logs one line for each such node. The protocol itself
 * continues.
 */
import type { NodeId, Tagged } from "../core/protocol.ts";
import { unwrapped } from "../core/wrapping.ts";
import type { Log } from "../runtime/log.ts";
import { type Counts, count } from "../runtime/metrics.ts";

interface Exposure {
  readonly liar: NodeId;
  readonly what: string;
}

/** Returns the node that a protocol's event exposes, or null for other events. */
function exposureIn(event: Tagged): Exposure | null {
  const said = unwrapped(event);
  switch (said.type) {
    case "exposed":
      return {
        liar: said.liar as NodeId,
        what: `it signed contradictory statements about sequence number ${said.sequence} in view ${said.view}`,
      };
    case "cheated":
      return { liar: said.player as NodeId, what: `there is proof that it has cheated (${said.how})` };
    default:
      return null;
  }
}

/** Returns a listener for a host's events. */
export const exposedLiars =
  (counts: Counts, log: Log) =>
  (event: Tagged): void => {
    const exposure = exposureIn(event);
    if (exposure === null) return;
    const { liar, what } = exposure;
    count(counts.exposed, String(liar));
    log.once(`exposed ${liar}`, `node ${liar} is Byzantine: ${what}`, { event: "exposed", peer: liar });
  };
