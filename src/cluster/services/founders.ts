/** What concerns the members that founded a cluster, and not those that came later. */
import { UsageError } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import type { Founder } from "../../protocols/service/coordination-service/member-words.ts";
import { formatHostPort } from "../../runtime/host-port.ts";
import type { GroupIdentity } from "../../runtime/transport/identity.ts";
import type { Kind } from "./api.ts";
import type { Membership } from "./membership.ts";

/** The other members as this one starts. */
export function othersNow({ id, known, config }: Pick<Membership, "id" | "known" | "config">): readonly NodeId[] {
  const all = known.list?.members.map(({ member }) => member) ?? Object.keys(config.members).map(Number);
  return all.filter((member) => member !== id);
}

/** The list as it was before its first change. */
export const founded = (
  founders: readonly NodeId[],
  { members }: Membership["config"],
  identity: GroupIdentity,
): readonly Founder[] =>
  founders.flatMap((member) => {
    const address = members[member]?.address;
    return address === undefined
      ? []
      : [{ member, address: formatHostPort(address), journal: identity.journalOf(member) }];
  });

/** Textbook algorithms and channels cannot change who takes part: that is the founders for good. @throws UsageError */
export function requireFounder({ id, founders }: Pick<Membership, "id" | "founders">, kind: Kind): void {
  if (founders.includes(id)) return;
  throw new UsageError(
    "members-fixed",
    kind === "channel"
      ? `expected a member that founded the cluster: who takes part in channels between members does not change, and member ${id} came later: channels with transport "log" have all members`
      : `expected a member that founded the cluster: of locks and elections only those on the log, the default, follow the list of members, and member ${id} came later`,
  );
}
