/**
 * A member's group as stored in its journal: the journal's own name, the member list, and the names of the other
 * members' journals.
 */
import { EnvironmentError } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import { list, natural, struct, text } from "../../core/shape.ts";
import type { Random } from "../platform/platform.ts";
import { groupText, MAX_JOURNAL_BYTES, type Memory } from "../transport/identity.ts";
import type { Journal, Slot } from "./journal.ts";

/**
 * `members` lists the founders. It is empty for a member that joined later. `others` is empty until the group has been
 * founded, and stays empty if there is only one member.
 */
export interface GroupRecord {
  readonly journal: string;
  readonly members: readonly NodeId[];
  readonly others: readonly { readonly node: NodeId; readonly journal: string }[];
}

const MAX_MEMBERS = 1_024;
/** The shape of the group record in the journal. */
export const groupShape = struct<GroupRecord>({
  journal: text(MAX_JOURNAL_BYTES),
  members: list(natural, MAX_MEMBERS),
  others: list(struct<GroupRecord["others"][number]>({ node: natural, journal: text(MAX_JOURNAL_BYTES) }), MAX_MEMBERS),
});

interface Told {
  /** Whether this member will join an existing group. Ignored once the journal contains one. */
  readonly isNewcomer?: boolean;
  /**
   * Whether the journal contains a member list that is later than the founders'. If so, the configured members are
   * ignored.
   */
  readonly isChanged?: boolean;
}

/**
 * Reads the group from the journal. A new journal is given a name and this member list. Resolves when these are
 * durable, because other members must not learn the name before then.
 *
 * @param members the founders, as configured for this member
 * @throws EnvironmentError `wrong-members` if the journal was started with a different list, or by a founder that is no
 * longer on it
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
      `expected a folder that is empty or belongs to a cluster, because this member is started with existing: true (--existing), got ${folder}, which was meant to found a cluster with the members ${groupText(known.members)} but has not done so: to join a running cluster, empty the folder; to found one, start the member without existing`,
    );
  const isFree = isChanged || known.members.length === 0;
  if (!isFree && groupText(known.members) !== groupText(ids))
    throw new EnvironmentError(
      "wrong-members",
      `expected the members ${groupText(known.members)}, as recorded in the journal in ${folder}, got ${groupText(ids)}: start this member with the recorded list, because with a different list it could vote in two majorities. If the list changed while the member was down, start it once with the recorded list: it learns about the change from the other members`,
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

/**
 * Whether the group has not been founded yet. A single member founds its group immediately and has no other members to
 * store.
 */
const isUnfounded = ({ members, others }: GroupRecord): boolean => members.length > 1 && others.length === 0;

function begun(slot: Slot<GroupRecord>, members: readonly NodeId[], journal: string): GroupRecord {
  const record = { journal, members, others: [] };
  slot.append(record);
  return record;
}
