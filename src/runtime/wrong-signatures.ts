/** The reaction to a peer that sends a value which another node did not sign: the member counts it, and logs it once per peer. */
import type { NodeId } from "../core/protocol.ts";
import type { Log } from "./log.ts";
import { type Counts, count } from "./metrics.ts";

/** For a host. The peer has invented the value, or forwards it unchecked; either way it cannot be trusted. */
export const wrongSignatures =
  (self: NodeId, counts: Counts, log: Log) =>
  (from: NodeId | null, by: NodeId): void => {
    const peer = from ?? self;
    count(counts.wrongSignatures, String(peer));
    log.once(`wrong-signature ${peer}`, `node ${peer} sent a value that node ${by} has not signed: ignoring it`, {
      event: "wrong-signature",
      peer,
      by,
    });
  };
