/**
 * The initial state of a new cluster that is founded from an old cluster's snapshot.
 *
 * The new cluster keeps all keys with their values and revisions, queue items and state machines. All sessions end, as
 * if each had expired: their keys, grants and arrivals are removed, and taken items return to the front of their queue.
 * Leases that clients of etcd were granted continue, and their time to live starts again. The new cluster sets its own
 * member list and addresses for clients.
 *
 * No token is issued twice, for the following reason. Tokens and client ids are revisions, and the old cluster may
 * have continued after the snapshot. The new cluster starts at a revision that the old one cannot have reached: 2^40
 * higher, plus a million for each second since the snapshot. Session ids advance by the same distance. A watch from the
 * old cluster fails with `compacted`, and a client must take a new id.
 */
import { UsageError } from "../../../core/errors.ts";
import { clone } from "../../../core/plain.ts";
import { compact } from "../keyspace/store.ts";
import { forgetMap } from "./keys.ts";
import type { Revision } from "./operations.ts";
import { ENDPOINTS, ETCD_ENDPOINTS, FIRST_CLIENT } from "./operations.ts";
import { endSession } from "./sessions.ts";
import type { Data, Limits } from "./state.ts";

/**
 * The minimum distance from the snapshot's revision. At a million revisions per second, a cluster uses up that many in
 * twelve days.
 */
const LEAD = 2 ** 40;
const REVISIONS_PER_MS = 1_000;
/** The maximum initial revision. There is the same amount of room above it. */
const MAX_REVISION = 2 ** 52;

/**
 * Returns the new cluster's first revision. @param elapsedMs the time since the snapshot, which may be too short if a
 * clock is wrong @throws UsageError after a few thousand restorations
 */
export function revisionBeyond(revision: Revision, elapsedMs: number): Revision {
  const beyond = revision + LEAD + Math.ceil(Math.max(0, elapsedMs)) * REVISIONS_PER_MS;
  if (beyond < MAX_REVISION) return beyond;
  throw new UsageError("bad-snapshot", `expected a revision below ${MAX_REVISION - LEAD}, got ${revision}`);
}

/** Returns the new cluster's data. @param revision the new cluster's first revision */
export function restored(saved: Data, revision: Revision): Data {
  const data = clone(saved);
  const { keyspace } = data;
  data.begun += revision - keyspace.revision;
  keyspace.revision = revision;
  for (const session of [...data.sessions]) endSession({ data, limits, tell: () => {} }, session, "expired");
  for (const map of [ENDPOINTS, ETCD_ENDPOINTS]) forgetMap(data, map);
  keyspace.revision += 1; // The compaction takes this revision, so watches from earlier revisions fail.
  compact(keyspace, keyspace.revision);
  data.lives = {};
  data.forgottenClients = FIRST_CLIENT + keyspace.revision;
  data.members = null;
  return data;
}

/** The limits that apply while sessions end. They have no effect, because ending a session needs no room. */
const limits: Limits = {
  maxBytes: 0,
  maxNames: 0,
  maxWaiting: 0,
  maxItems: 0,
  maxHistoryBytes: 0,
  maxPendingBytes: 0,
  maxMachines: 0,
  maxMachineBytes: 0,
};
