/**
 * The member list in this member's journal, as of the last change that the member has applied. After a restart, the
 * member uses this list to connect before it has read the log. Absent as long as the members are the cluster's
 * founders.
 */
import { EnvironmentError } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import { type MemberList, memberListShape } from "../../protocols/service/coordination-service/member-words.ts";
import type { Journal, Slot } from "../../runtime/journal/journal.ts";

/** Stores the member list in the journal. */
export class KnownMembers {
  readonly #slot: Slot<MemberList>;
  #list: MemberList | null;

  constructor(journal: Journal) {
    this.#slot = journal.slot("members", memberListShape);
    this.#list = this.#slot.records.at(-1) ?? null;
  }

  get list(): MemberList | null {
    return this.#list;
  }

  /**
   * Stores the list.
   * @returns false if the list is not newer. After a restart, the log repeats earlier lists
   */
  note(list: MemberList): boolean {
    if (this.#list !== null && list.revision <= this.#list.revision) return false;
    this.#list = list;
    this.#slot.compact([list]);
    return true;
  }

  /** Records that this member was removed, as reported by a member with a later list. */
  noteRemoved(self: NodeId): void {
    if (this.#list === null || this.#list.removed.includes(self)) return;
    const members = this.#list.members.filter(({ member }) => member !== self);
    this.#list = { ...this.#list, members, removed: [...this.#list.removed, self] };
    this.#slot.compact([this.#list]);
  }

  /** @throws EnvironmentError `member-removed` */
  requireMember(id: NodeId, folder: string): void {
    if (this.#list?.removed.includes(id) === true)
      throw new EnvironmentError(
        "member-removed",
        `member ${id} has been removed, according to the journal in ${folder}: ids are not reused, so add a member with a new id and start it with an empty folder`,
      );
  }
}
