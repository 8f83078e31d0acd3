/**
 * The initial state of a new cluster that is founded from a snapshot of another one.
 *
 * Kept: keys with their values and revisions, counters, items of queues, state machines, and the present keys of etcd's
 * keyspace.
 * Ended: all sessions, as if each had expired. Leased keys, grants and arrivals are gone, and taken items are at the
 * front of their queue. The member list and the addresses for clients are those that the new cluster sets.
 *
 * Why no token is issued twice: tokens, session ids and client ids are revisions, and the old cluster may have
 * continued after the snapshot. The new one starts so far above it that the old one cannot have got there: 2^40
 * revisions, and a million for each second since. A watch of the old cluster fails with `compacted`, and a client of it
 * must take a new id.
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

/** More revisions than a cluster uses in twelve days at a million per second. */
const LEAD = 2 ** 40;
const REVISIONS_PER_MS = 1_000;
/** There is as much room again above it. */
const MAX_REVISION = 2 ** 52;

/**
 * @param elapsedMs the time since the snapshot; a clock may show less than has really passed. @throws UsageError after
 * a few thousand restorations
 */
export function revisionBeyond(revision: Revision, elapsedMs: number): Revision {
  const beyond = revision + LEAD + Math.ceil(Math.max(0, elapsedMs)) * REVISIONS_PER_MS;
  if (beyond < MAX_REVISION) return beyond;
  throw new UsageError("bad-snapshot", `expected a revision below ${MAX_REVISION - LEAD}, got ${revision}`);
}

/** @param revision the first revision of the new cluster. */
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
 * Restores etcd's keyspace. Its clients use revisions of the keyspace as tokens. Each change of it also took a revision
 * of the log, so its revision is at most the revision of the log plus its initial one: the keyspace continues above
 * both. Its leases continue, with their time to live restarted.
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

/** No limit applies, since ending a session needs no room. */
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
