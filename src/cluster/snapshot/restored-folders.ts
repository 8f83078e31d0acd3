/**
 * Creates a new cluster from a snapshot, with a folder for each member. The members know each other's journals from the
 * start. The journals are new, so members of the old and the new cluster refuse each other (`lost-journal`). If the
 * member ids differ, so do the member lists.
 */
import { rm } from "node:fs/promises";
import { type EnvironmentError, UsageError } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import type { Raft } from "../../protocols/consensus/raft/vocabulary.ts";
import { coordinationService } from "../../protocols/service/coordination-service/coordination-service.ts";
import { foundingRecords } from "../../protocols/service/coordination-service/founding.ts";
import { restored, revisionBeyond } from "../../protocols/service/coordination-service/restored.ts";
import { openJournal } from "../../runtime/journal/disk-journal.ts";
import { type GroupRecord, groupShape } from "../../runtime/journal/group-memory.ts";
import { protocolSlot } from "../../runtime/journal/protocol-slot.ts";
import type { Log } from "../../runtime/log.ts";
import type { Platform } from "../../runtime/platform/platform.ts";
import { realPlatform } from "../../runtime/platform/real.ts";
import { requireEmpty } from "../kept-journal.ts";
import type { Snapshot } from "./snapshot-file.ts";

/** The cluster to create. */
export interface NewCluster {
  readonly cluster: string;
  /** The names of the members' journals, keyed by member. */
  readonly journals: ReadonlyMap<NodeId, string>;
  /** The first revision of the new cluster. */
  readonly revision: number;
  readonly records: readonly Raft["record"][];
}

/** @throws UsageError */
export function newCluster(
  { header, data }: Snapshot,
  { cluster, members }: { readonly cluster: string; readonly members: readonly NodeId[] },
  { clock, random }: Pick<Platform, "clock" | "random">,
): NewCluster {
  const revision = revisionBeyond(header.revision, clock.wall() - header.at);
  return {
    cluster,
    revision,
    journals: new Map(members.map((member) => [member, random.name()])),
    records: foundingRecords(restored(data, revision), members),
  };
}

/** @throws UsageError `folder-in-use` if the folder contains a journal; EnvironmentError if the disk fails */
export async function makeFolder(
  platform: Platform,
  { cluster, journals, records }: NewCluster,
  id: NodeId,
  folder: string,
  log: Pick<Log, "warn">,
): Promise<void> {
  const failures: EnvironmentError[] = [];
  const journal = await openJournal(folder, {
    platform,
    owner: `member ${id} of ${cluster}`,
    log,
    onFailure: (error) => void failures.push(error),
  });
  try {
    if (journal.has("group"))
      throw new UsageError("folder-in-use", `expected ${folder} to contain no journal, but it does`);
    const members = [...journals.keys()].sort((a, b) => a - b);
    const others = [...journals].flatMap(([node, name]) => (node === id ? [] : [{ node, journal: name }]));
    const own = { journal: journals.get(id) as string, members, others };
    journal.slot<GroupRecord>("group", groupShape).append(own);
    const slot = protocolSlot(journal, "service", coordinationService({ log: { voters: members } }));
    for (const record of records) slot.append({ type: "log", body: record } as never);
  } finally {
    await journal.close();
  }
  const [failure] = failures;
  if (failure !== undefined) throw failure;
}

/** The settings for a restored cluster. */
export interface Restoration {
  readonly cluster: string;
  readonly members: readonly NodeId[];
  folderOf(id: NodeId): string;
  readonly log: Pick<Log, "warn">;
}

/**
 * Creates all of the cluster's folders, or none.
 * @throws UsageError, EnvironmentError
 */
export async function restoreCluster(snapshot: Snapshot, { folderOf, log, ...of }: Restoration): Promise<NewCluster> {
  for (const id of of.members) requireEmpty(folderOf(id));
  const made = newCluster(snapshot, of, realPlatform);
  try {
    for (const id of of.members) await makeFolder(realPlatform, made, id, folderOf(id), log);
  } catch (error) {
    for (const id of of.members) await rm(folderOf(id), { recursive: true, force: true });
    throw error;
  }
  return made;
}
