/**
 * Creates a folder for a member that lost its own, from the folders of other members. The lost member's promises are
 * unknown, but it decided nothing alone. A majority of the members took part in each decision, so any majority of the
 * other members' journals includes it. The new folder repeats every promise in those journals. If there are fewer
 * folders than a majority, a decision could be lost.
 */
import { type EnvironmentError, UsageError } from "../core/errors.ts";
import { canonical } from "../core/plain.ts";
import type { NodeId } from "../core/protocol.ts";
import { majority } from "../core/quorums.ts";
import { rewrapped, unwrapped } from "../core/wrapping.ts";
import { openJournal } from "../runtime/journal/disk-journal.ts";
import { type GroupRecord, groupShape } from "../runtime/journal/group-memory.ts";
import type { Journal } from "../runtime/journal/journal.ts";
import type { Log } from "../runtime/log.ts";
import { realPlatform } from "../runtime/platform/real.ts";
import { type AnyRecord, type KeptJournal, readKept, requireEmpty } from "./kept-journal.ts";

/** The lost member, and the folders used to recreate its own. */
export interface Replacement {
  readonly id: NodeId;
  /** The folder for the new journal, which must not exist yet. */
  readonly folder: string;
  /** The folders of a majority of the members, all intact. */
  readonly from: readonly string[];
  readonly log: Pick<Log, "warn">;
}

/**
 * Creates the new folder with its journal. Validates everything before writing.
 * @throws UsageError, EnvironmentError
 */
export async function replaceMember({ id, folder, from, log }: Replacement): Promise<void> {
  const kept = from.map((each) => readKept(each, "cannot-replace"));
  const { group, cluster } = requireSound(kept, id);
  requireEmpty(folder);
  const failures: EnvironmentError[] = [];
  const journal = await openJournal(folder, {
    platform: realPlatform,
    owner: `member ${id} of ${cluster}`,
    log,
    onFailure: (error) => void failures.push(error),
  });
  const names = new Map(kept.flatMap((each) => each.group.others.map(({ node, journal }) => [node, journal] as const)));
  for (const each of kept) names.set(each.id, each.group.journal);
  const others = [...names].filter(([node]) => node !== id).map(([node, journal]) => ({ node, journal }));
  const own = { journal: names.get(id) as string, members: group.members, others };
  journal.slot<GroupRecord>("group", groupShape).append(own);
  promiseLog(journal, kept, id, Date.now());
  await journal.close();
  const [failure] = failures;
  if (failure !== undefined) throw failure;
}

/**
 * The margin added to the highest known term. No candidate can be this many terms ahead of a majority, since it runs a
 * pre-vote before each term.
 */
const TERMS_BEYOND = 1_000;
const DAY_MS = 24 * 3_600_000;

/**
 * Writes the promises for the replicated log. These are all entries of the most complete log, which include everything
 * that was committed. The member has no vote in any term that the lost member may have voted in. Its session gets a
 * life and a run that no earlier session can have had.
 */
function promiseLog(journal: Journal, kept: readonly KeptJournal[], id: NodeId, now: number): void {
  const logs = kept.flatMap(({ slots }) => slots.get("service/log") ?? []).filter(({ records }) => records.length > 0);
  const [longest] = logs.sort((a, b) => byLast(lastOf(b.records), lastOf(a.records)));
  if (longest === undefined) return;
  const slot = journal.slot<object>("service/log", longest.shape);
  for (const record of longest.records) slot.append(record);
  const terms = logs.flatMap(({ records }) =>
    records.map((record) => (logRecord(record).term as number | undefined) ?? 0),
  );
  const voted = { type: "voted", term: Math.max(...terms) + TERMS_BEYOND, votedFor: id };
  slot.append(rewrapped(longest.records[0] as never, voted));
  const life = { type: "life", run: Math.floor(now / DAY_MS), life: now };
  journal.slot<object>("service/session", longest.shape).append({ type: "session", body: life });
}

const logRecord = (record: AnyRecord): AnyRecord => unwrapped(record as never);

interface Last {
  readonly term: number;
  readonly index: number;
}

const byLast = (a: Last, b: Last): number => a.term - b.term || a.index - b.index;

/** Returns the last entry of the log from its Raft records. */
function lastOf(records: readonly AnyRecord[]): Last {
  let before: Last = { term: 0, index: 0 };
  let terms: number[] = [];
  for (const { type, ...record } of records.map(logRecord)) {
    if (type === "appended") terms.push(...(record.entries as { term: number }[]).map(({ term }) => term));
    else if (type === "truncated") terms.length = (record.lastIndex as number) - before.index;
    else if (type === "snapshot") {
      before = { term: record.offsetTerm as number, index: record.offset as number };
      terms = [];
    }
  }
  return { term: terms.at(-1) ?? before.term, index: before.index + terms.length };
}

function requireSound(kept: readonly KeptJournal[], id: NodeId): { group: GroupRecord; cluster: string } {
  const [first] = kept;
  if (first === undefined)
    throw new UsageError("bad-argument", "expected the folders of a majority with --from, got none");
  const { members } = first.group;
  const refuse = (text: string): never => {
    throw new UsageError("cannot-replace", text);
  };
  if (!members.includes(id)) refuse(`expected one of the members ${members.join(", ")}, got ${id}`);
  for (const { folder, id: keeper, group, cluster, slots } of kept) {
    if ((slots.get("members")?.records.length ?? 0) > 0)
      refuse(
        `expected a cluster whose member list has not changed since it was founded, but the journal in ${folder} has a later list: give the member another id, with \`coterie member add ID HOST:PORT --replaces ${id}\`, and an empty folder`,
      );
    if (canonical(group.members) !== canonical(members) || cluster !== first.cluster)
      refuse(`expected folders of one cluster, but ${first.folder} and ${folder} belong to different clusters`);
    if (group.others.length === 0)
      refuse(
        `expected the journal in ${folder} to record the other members, but it does not: member ${keeper} has not met all of them yet. Stop all members, empty all their folders and start them together, as a new cluster`,
      );
  }
  const ids = new Set(kept.map((each) => each.id));
  if (ids.has(id)) refuse(`expected folders of members other than ${id}, which is being replaced`);
  const quorum = majority(members.length);
  if (ids.size < quorum)
    refuse(
      `expected the folders of ${quorum} of the ${members.length} members, got the folders of ${[...ids].join(", ")}: fewer folders may not contain all promises of member ${id}. If more folders are lost, save the rest with \`coterie snapshot save FILE --from FOLDER\` and create a new cluster from it`,
    );
  const journals = kept.map(({ group }) => group.others.find(({ node }) => node === id)?.journal);
  if (new Set(journals).size > 1)
    refuse(`expected the folders to record the same journal for member ${id}, but they record several`);
  return first;
}
