/** What a journal remembers of the group that its member is in: its own name, the list of members, the others' journals. */
import { EnvironmentError } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import { list, natural, struct, text } from "../../core/shape.ts";
import type { Random } from "../platform/platform.ts";
import { groupText, MAX_JOURNAL_BYTES, type Memory } from "../transport/identity.ts";
import type { Journal, Slot } from "./journal.ts";

/** `members` are the founders; empty of a member that came later. `others` is empty until the group is founded; that of a single member stays so. */
export interface GroupRecord {
  readonly journal: string;
  readonly members: readonly NodeId[];
  readonly others: readonly { readonly node: NodeId; readonly journal: string }[];
}

const MAX_MEMBERS = 1_024;
export const groupShape = struct<GroupRecord>({
  journal: text(MAX_JOURNAL_BYTES),
  members: list(natural, MAX_MEMBERS),
  others: list(struct<GroupRecord["others"][number]>({ node: natural, journal: text(MAX_JOURNAL_BYTES) }), MAX_MEMBERS),
});

interface Told {
  /** This member is to come into a group that others have founded; once the journal knows one, that does not matter. */
  readonly isNewcomer?: boolean;
  /** The journal knows a later list than that of the founders: then what this member was told does not matter. */
  readonly isChanged?: boolean;
}

/**
 * Opens what the journal remembers; a new journal gets a name and
 * this list of members. Resolves when that is durable: only then may anybody hear of it.
 * @param members the founders, by what this member was told.
 * @throws EnvironmentError `wrong-members` if the journal was begun with another list, or by a founder that is none now.
 */
export async function groupMemory(
  journal: Journal,
  members: readonly NodeId[],
  folder: string,
  random: Random,
  { isNewcomer = false, isChanged = false }: Told = {},
): Promise<Memory & { readonly founders: readonly NodeId[] }> {
  const slot = journal.slot<GroupRecord>("group", groupShape);
  const ids = [...members].sort((a, b) => a - b);
  const known = slot.records[0] ?? begun(slot, isNewcomer ? [] : ids, random.name());
  if (isNewcomer && !isChanged && isUnfounded(known))
    throw new EnvironmentError(
      "wrong-members",
      `expected a folder that is empty or knows a cluster, as this member is started with existing: true (--existing), got ${folder}, which was begun to found one of the members ${groupText(known.members)} and has not: if this member is to join a cluster that runs, empty the folder; if it is to found one, start it without`,
    );
  const isFree = isChanged || known.members.length === 0;
  if (!isFree && groupText(known.members) !== groupText(ids))
    throw new EnvironmentError(
      "wrong-members",
      `expected the members ${groupText(known.members)}, as the journal in ${folder} knows them, got ${groupText(ids)}: start this member with the list that it had, for with another it would give two majorities its vote. If the list was changed while it was down, start it once with the list that it had: it learns of the change from the others`,
    );
  await new Promise<void>((resolve) => slot.whenDurable(resolve));
  return {
    journal: known.journal,
    founders: known.members,
    others: known.others.length === 0 ? null : new Map(known.others.map(({ node, journal }) => [node, journal])),
    found(others, then) {
      const listed = [...others].map(([node, journal]) => ({ node, journal }));
      slot.compact([{ ...known, others: listed }]);
      slot.whenDurable(then);
    },
  };
}

/** A single member founds at once, and remembers nobody. */
const isUnfounded = ({ members, others }: GroupRecord): boolean => members.length > 1 && others.length === 0;

function begun(slot: Slot<GroupRecord>, members: readonly NodeId[], journal: string): GroupRecord {
  const record = { journal, members, others: [] };
  slot.append(record);
  return record;
}
