/** Creates a snapshot from the remaining members' folders when no majority is left. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "../../core/errors.ts";
import { canonical } from "../../core/plain.ts";
import { majority } from "../../core/quorums.ts";
import { unwrapped } from "../../core/wrapping.ts";
import type { Raft } from "../../protocols/consensus/raft/vocabulary.ts";
import { type Salvaged, salvaged } from "../../protocols/service/coordination-service/salvage.ts";
import { requireUnclaimed } from "../../runtime/platform/claim.ts";
import { type KeptJournal, readKept } from "../kept-journal.ts";
import { type SnapshotHeader, snapshotFile } from "./snapshot-file.ts";

const CODE = "cannot-save";

/** The snapshot, and how current it is. */
export interface SalvagedSnapshot {
  readonly header: SnapshotHeader;
  /** The bytes of the snapshot file. */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Whether there are enough folders to rule out a missing acknowledged change. */
  readonly isComplete: boolean;
}

/**
 * Saves the state from the folder with the most up-to-date log. Refuses a folder that is in use, because restoring from
 * a running cluster would create a second one.
 * @throws UsageError, EnvironmentError
 */
export async function salvageFolders(folders: readonly string[]): Promise<SalvagedSnapshot> {
  for (const folder of folders) await requireUnclaimed(folder);
  const kept = folders.map((folder) => readKept(folder, CODE));
  requireOneCluster(kept);
  const found = kept.map((each) => ({ kept: each, ...salvagedFrom(each) }));
  const [best] = found.sort((a, b) => b.lastTerm - a.lastTerm || b.lastIndex - a.lastIndex);
  if (best === undefined) throw new UsageError("bad-argument", "expected a folder with --from, got none");
  const ids = kept.map(({ id }) => id);
  const header = {
    cluster: best.kept.cluster,
    member: best.kept.id,
    at: Math.floor(statSync(join(best.kept.folder, "journal")).mtimeMs),
    revision: best.data.keyspace.revision,
    salvaged: { folders: ids, voters: [...best.voters], uncertain: best.lastIndex - best.committed },
  };
  const voting = best.voters.filter((voter) => ids.includes(voter));
  const isComplete = voting.length >= majority(best.voters.length);
  return { header, bytes: snapshotFile(header, best.data), isComplete };
}

function salvagedFrom({ id, folder, group, slots }: KeptJournal): Salvaged {
  const records = (slots.get("service/log")?.records ?? []).map((record) => unwrapped(record as never));
  if (records.length === 0) throw new UsageError(CODE, `expected ${folder} to contain shared state, but it does not`);
  const founders = group.members.length === 0 ? [id] : group.members;
  return salvaged(founders, records as unknown as Raft["record"][]);
}

function requireOneCluster(kept: readonly KeptJournal[]): void {
  const refuse = (a: KeptJournal, b: KeptJournal): never => {
    throw new UsageError(
      CODE,
      `expected folders of one cluster, but ${a.folder} and ${b.folder} belong to different clusters`,
    );
  };
  for (const [at, a] of kept.entries())
    for (const b of kept.slice(at + 1)) {
      const groups = [a, b].map(({ group }) => group.members).filter(({ length }) => length > 0);
      const isOneList = new Set(groups.map(canonical)).size < 2;
      if (a.cluster !== b.cluster || a.id === b.id || !isOneList || !knows(a, b) || !knows(b, a)) refuse(a, b);
    }
}

/** Whether the first journal records the second member's current journal, or none for that member. */
function knows({ group }: KeptJournal, { id, group: its }: KeptJournal): boolean {
  const remembered = group.others.find(({ node }) => node === id)?.journal;
  return remembered === undefined || remembered === its.journal;
}
