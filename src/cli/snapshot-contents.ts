/** What a snapshot holds, in words. */

import type { Snapshot } from "../cluster/snapshot/snapshot-file.ts";
import { OWN_NAMES } from "../protocols/service/coordination-service/operations.ts";

/** By what it is, in the order in which it is shown. */
export function contentsOf({ header, data }: Snapshot): Readonly<Record<string, string | number>> {
  const { cluster, member, at, revision, salvaged } = header;
  const saved = `${new Date(at).toISOString()} by member ${member}`;
  const isOfUsers = (name: string): boolean => !name.startsWith(OWN_NAMES);
  const maps = data.maps.values.filter((_map, at) => isOfUsers(data.maps.keys[at] as string));
  const keys = maps.flatMap(({ values }) => values);
  const leased = keys.filter(({ session }) => session !== null).length;
  const items = data.queues.values.reduce((sum, queue) => sum + queue.items.length + queue.taken.length, 0);
  const holders = data.locks.values.reduce((sum, lock) => sum + lock.holders.length, 0);
  return {
    cluster,
    saved: salvaged === null ? saved : `${saved}, out of the folders of ${salvaged.folders.join(", ")}`,
    revision,
    ...(salvaged !== null && { uncertain: `${salvaged.uncertain} entries at the end of the log` }),
    maps: `${maps.length} with ${keys.length} keys`,
    counters: data.counters.keys.filter(isOfUsers).length,
    queues: `${data.queues.keys.length} with ${items} items`,
    machines: data.machines.keys.length === 0 ? "none" : data.machines.keys.join(", "),
    over: `${data.sessions.length} sessions, ${leased} leased keys, ${holders} grants: a restored cluster has none of them`,
  };
}
