/**
 * What a member does when its protocol has proof that a node lies: it counts that, and says it once of each node. The protocol
 * itself goes on without the liar, or beside it.
 */
import type { NodeId, Tagged } from "../core/protocol.ts";
import { unwrapped } from "../core/wrapping.ts";
import type { Log } from "../runtime/log.ts";
import { type Counts, count } from "../runtime/metrics.ts";

interface Exposure {
  readonly liar: NodeId;
  readonly what: string;
}

/** Of the events by which protocols name a liar; null: none of those. */
function exposureIn(event: Tagged): Exposure | null {
  const said = unwrapped(event);
  switch (said.type) {
    case "exposed":
      return {
        liar: said.liar as NodeId,
        what: `what no correct node signs, about sequence number ${said.sequence} in view ${said.view}`,
      };
    case "cheated":
      return { liar: said.player as NodeId, what: `what proves that it has cheated (${said.how})` };
    default:
      return null;
  }
}

/** For a host, as what it tells events to. */
export const exposedLiars =
  (counts: Counts, log: Log) =>
  (event: Tagged): void => {
    const exposure = exposureIn(event);
    if (exposure === null) return;
    const { liar, what } = exposure;
    count(counts.exposed, String(liar));
    log.once(`exposed ${liar}`, `node ${liar} lies: there is ${what}`, { event: "exposed", peer: liar });
  };
