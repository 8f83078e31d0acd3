/**
 * The list of members in this member's journal, as of the last change that it has applied. After a restart it uses this
 * list to connect, before it has read the log. Absent while the members are the founders of the cluster.
 */
import { EnvironmentError } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import { type MemberList, memberListShape } from "../../protocols/service/coordination-service/member-words.ts";
import type { Journal, Slot } from "../../runtime/journal/journal.ts";

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

  /** @returns false if the list is not newer: after a restart the log repeats earlier ones. */
  note(list: MemberList): boolean {
    if (this.#list !== null && list.revision <= this.#list.revision) return false;
    this.#list = list;
    this.#slot.compact([list]);
    return true;
  }

  /** Another member, which knows a later list, has reported that this one was removed. */
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
