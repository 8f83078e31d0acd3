/** What a snapshot holds: in numbers, and in words. */
import type { Snapshot, SnapshotHeader } from "../cluster/snapshot/snapshot-file.ts";
import { counted } from "../experiment/paragraph.ts";
import { OWN_NAMES } from "../protocols/service/coordination-service/operations.ts";

/** As `--json` prints it. */
export interface SnapshotContents extends SnapshotHeader {
  readonly maps: number;
  readonly keys: number;
  readonly counters: number;
  readonly queues: number;
  /** Those that were taken among them. */
  readonly items: number;
  /** By name. */
  readonly machines: readonly string[];
  /** What a restored cluster has none of: sessions, and the keys and grants that end with them. */
  readonly sessions: number;
  readonly leasedKeys: number;
  readonly grants: number;
}

export function contentsOf({ header, data }: Snapshot): SnapshotContents {
  const isOfUsers = (name: string): boolean => !name.startsWith(OWN_NAMES);
  const maps = data.maps.values.filter((_map, at) => isOfUsers(data.maps.keys[at] as string));
  const keys = maps.flatMap(({ values }) => values);
  return {
    ...header,
    maps: maps.length,
    keys: keys.length,
    counters: data.counters.keys.filter(isOfUsers).length,
    queues: data.queues.keys.length,
    items: data.queues.values.reduce((sum, queue) => sum + queue.items.length + queue.taken.length, 0),
    machines: data.machines.keys,
    sessions: data.sessions.length,
    leasedKeys: keys.filter(({ session }) => session !== null).length,
    grants: data.locks.values.reduce((sum, lock) => sum + lock.holders.length, 0),
  };
}

const some = (count: number, one: string, more = `${one}s`): string => counted(count, { one, more });

/** By what it is, in the order in which it is shown. */
export function inWords(contents: SnapshotContents): Readonly<Record<string, string | number>> {
  const { cluster, member, at, revision, salvaged, machines } = contents;
  const saved = `${new Date(at).toISOString()} by member ${member}`;
  const gone = [
    some(contents.sessions, "session"),
    some(contents.leasedKeys, "leased key"),
    some(contents.grants, "grant"),
  ];
  return {
    cluster,
    saved: salvaged === null ? saved : `${saved}, out of the folders of ${salvaged.folders.join(", ")}`,
    revision,
    ...(salvaged !== null && {
      uncertain: `${some(salvaged.uncertain, "entry", "entries")} at the end of the log`,
    }),
    maps: `${contents.maps} with ${some(contents.keys, "key")}`,
    counters: contents.counters,
    queues: `${contents.queues} with ${some(contents.items, "item")}`,
    machines: machines.length === 0 ? "none" : machines.join(", "),
    over: `${gone.join(", ")}: a restored cluster has none of them`,
  };
}
