/**
 * What a new cluster begins with that is founded from a snapshot of another one.
 *
 * Kept: keys with their values and revisions, counters, items of queues, state machines, and the present keys of etcd's keyspace.
 * Over: all sessions, and with them what they held and waited for, as if each had expired: leased keys, grants and arrivals are gone,
 * and items that were taken are at the front of their queue. The list of members is that of the new cluster, and so is where they
 * serve clients.
 *
 * Why no token is given twice. Tokens, ids of sessions and numbers of clients are revisions, and the old cluster may have gone on
 * after the snapshot. The new one begins so far above it that the old one could not have come there: 2^40 revisions, and a million for
 * each second since. Watches that were begun in the old one are told `compacted`, and clients of it to take another number.
 */
import { UsageError } from "../../../core/errors.ts";
import { clone } from "../../../core/plain.ts";
import { KEYSPACE } from "../keyspace/built-in.ts";
import { compact, type Keyspace } from "../keyspace/versions.ts";
import { forgetMap } from "./keys.ts";
import type { Revision } from "./operations.ts";
import { ENDPOINTS, ETCD_ENDPOINTS, FIRST_CLIENT } from "./operations.ts";
import { endSession } from "./sessions.ts";
import type { Data, Limits } from "./state.ts";
import { emptyTable, lookUp } from "./table.ts";

/** More than a cluster gets through in twelve days, at a million a second. */
const LEAD = 2 ** 40;
const REVISIONS_PER_MS = 1_000;
/** There is as much room above it. */
const MAX_REVISION = 2 ** 52;

/** @param elapsedMs since that snapshot, of which a clock may know less than there was. @throws UsageError after some thousand restorations */
export function revisionBeyond(revision: Revision, elapsedMs: number): Revision {
  const beyond = revision + LEAD + Math.ceil(Math.max(0, elapsedMs)) * REVISIONS_PER_MS;
  if (beyond < MAX_REVISION) return beyond;
  throw new UsageError("bad-snapshot", `expected a revision below ${MAX_REVISION - LEAD}, got ${revision}`);
}

/** @param revision from which on the new cluster counts. */
export function restored(saved: Data, revision: Revision): Data {
  const data = clone(saved);
  data.revision = revision;
  for (const session of [...data.sessions]) endSession({ data, limits, tell: () => {} }, session, "expired");
  for (const map of [ENDPOINTS, ETCD_ENDPOINTS]) forgetMap(data, map);
  restoreKeyspace(data);
  data.kept = { changes: [], bytes: 0, forgotten: data.revision, forgottenOf: emptyTable() };
  data.lives = {};
  data.forgottenClients = FIRST_CLIENT + data.revision;
  data.members = null;
  return data;
}

/**
 * What etcd's clients take for tokens are revisions of the keyspace. Each of them came with a revision of the log, so it stood no higher than
 * that, plus the one it began with: from here on it goes on above. Its leases go on, and are counted anew.
 */
function restoreKeyspace(data: Data): void {
  const machine = lookUp(data.machines, KEYSPACE);
  if (machine === null || !machine.isDefined) return;
  const keyspace = machine.state as Keyspace;
  keyspace.revision = data.revision + 1;
  compact(keyspace, keyspace.revision);
  data.bytes += keyspace.bytes - machine.bytes;
  machine.bytes = keyspace.bytes;
}

/** What ends takes no more room. */
const limits: Limits = {
  maxBytes: 0,
  maxNames: 0,
  maxWaiting: 0,
  maxItems: 0,
  maxChanges: 0,
  maxChangeBytes: 0,
  maxPendingBytes: 0,
  maxMachines: 0,
  maxMachineBytes: 0,
};
