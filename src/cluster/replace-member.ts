/**
 * Makes a folder for a member that has lost its own, from the folders of other members. The promises of the lost member are
 * unknown. But a majority of the members took part in each decision that it took part in. So any majority of the others'
 * journals includes the entry, and the new folder repeats every promise in them. With fewer folders than a majority a
 * decision could be lost.
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

export interface Replacement {
  readonly id: NodeId;
  /** The folder of the new journal, which must not exist. */
  readonly folder: string;
  /** The folders of a majority of the members, all intact. */
  readonly from: readonly string[];
  readonly log: Pick<Log, "warn">;
}

/** Validates everything before it writes. @throws UsageError, EnvironmentError */
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

/** No candidate runs this many terms ahead of a majority's highest term, since it asks for a pre-vote before each term. */
const TERMS_BEYOND = 1_000;
const DAY_MS = 24 * 3_600_000;

/**
 * The promises for the replicated log: all entries of the most complete log, so everything that was committed; no vote in
 * any term that the lost member may have voted in; and for its session, a life and a run that no earlier session can have
 * had.
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

/** The last entry of the log in these Raft records. */
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
        `expected the journal in ${folder} to know the other members, but it does not: member ${keeper} has not met all of them yet. Stop all members, empty all their folders and start them together, as a new cluster`,
      );
  }
  const ids = new Set(kept.map((each) => each.id));
  if (ids.has(id)) refuse(`expected folders of members other than ${id}, which is being replaced`);
  const quorum = majority(members.length);
  if (ids.size < quorum)
    refuse(
      `expected the folders of ${quorum} of the ${members.length} members, got the folders of ${[...ids].join(", ")}: fewer may not know the promises of member ${id}. If more folders are lost, save the rest with \`coterie snapshot save FILE --from FOLDER\` and found a new cluster from it`,
    );
  const journals = kept.map(({ group }) => group.others.find(({ node }) => node === id)?.journal);
  if (new Set(journals).size > 1)
    refuse(`expected the folders to remember one journal of member ${id}, but they remember several`);
  return first;
}
