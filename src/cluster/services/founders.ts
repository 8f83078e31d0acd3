/** The founders of a cluster, as opposed to members that joined later. */
import type { NodeId } from "../../core/protocol.ts";
import type { Founder } from "../../protocols/service/coordination-service/member-words.ts";
import { formatHostPort } from "../../runtime/host-port.ts";
import type { GroupIdentity } from "../../runtime/transport/identity.ts";
import type { Membership } from "./membership.ts";

/** Returns the other members at startup. */
export function othersNow({ id, known, config }: Pick<Membership, "id" | "known" | "config">): readonly NodeId[] {
  const all = known.list?.members.map(({ member }) => member) ?? Object.keys(config.members).map(Number);
  return all.filter((member) => member !== id);
}

/** Returns the member list before its first change. */
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
