/** What a member does when a peer sends what somebody else has not signed: it counts that, and says it once of each peer. */
import type { NodeId } from "../core/protocol.ts";
import type { Log } from "./log.ts";
import { type Counts, count } from "./metrics.ts";

/** For a host. The peer has made it up, or passes on what it has not looked at: either way it is not to be trusted. */
export const wrongSignatures =
  (self: NodeId, counts: Counts, log: Log) =>
  (from: NodeId | null, by: NodeId): void => {
    const peer = from ?? self;
    count(counts.wrongSignatures, String(peer));
    log.once(`wrong-signature ${peer}`, `node ${peer} sent what node ${by} has not signed: it does not count`, {
      event: "wrong-signature",
      peer,
      by,
    });
  };
