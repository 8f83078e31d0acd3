/** Metrics of the replicated log and its data, read from the service on demand. */
import type { StateOf } from "../../../core/protocol.ts";
import { lastIndex } from "../../../protocols/consensus/raft/log.ts";
import type { CoordinationService } from "../../../protocols/service/coordination-service/coordination-service.ts";
import { waitingBytes } from "../../../protocols/service/coordination-service/machines.ts";
import { MAX_STATE_BYTES } from "../../../protocols/service/coordination-service/replica.ts";
import { sizeOf } from "../../../protocols/service/coordination-service/state.ts";
import type { LogGauges } from "../../../runtime/metric-table.ts";

/** Returns the current metrics of the log and its data. */
export function logGauges({ log, replica }: StateOf<CoordinationService>): LogGauges {
  const { term, commitIndex, role } = log;
  const last = lastIndex(log.log);
  const followers = role.is === "leader" ? Object.entries(role.followers) : [];
  return {
    term,
    isLeader: role.is === "leader",
    lastIndex: last,
    commitIndex,
    appliedIndex: replica.index,
    entries: last - log.snapshot.index,
    lag: Object.fromEntries(followers.map(([peer, { match }]) => [peer, last - match])),
    sessions: replica.data.sessions.length,
    stateBytes: sizeOf(replica.data),
    stateBytesLimit: MAX_STATE_BYTES,
    undefinedBytes: waitingBytes(replica.data),
    snapshotChars: replica.saved,
  };
}
