/**
 * Handles a peer that presents a value as signed by a node that did not sign it. The member counts such values, and
 * logs them once per peer.
 */
import type { NodeId } from "../core/protocol.ts";
import type { Log } from "./log.ts";
import { type Counts, count } from "./metrics.ts";

/**
 * Returns a callback for a host. The peer either made the value up or forwarded it without checking it. Either way, the
 * value cannot be trusted.
 */
export const wrongSignatures =
  (self: NodeId, counts: Counts, log: Log) =>
  (from: NodeId | null, by: NodeId): void => {
    const peer = from ?? self;
    count(counts.wrongSignatures, String(peer));
    log.once(
      `wrong-signature ${peer}`,
      `node ${peer} sent a value that node ${by} has not signed: ignoring the value`,
      {
        event: "wrong-signature",
        peer,
        by,
      },
    );
  };
