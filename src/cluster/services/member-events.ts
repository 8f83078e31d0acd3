/** Events for readers at their own pace: the latest are kept, and how many were lost is said. */
import type { NodeId } from "../../core/protocol.ts";
import type { MemberList } from "../../protocols/service/coordination-service/member-words.ts";
import type { Disagreement } from "../../runtime/transport/identity.ts";
import type { MemberEvent } from "./api.ts";

const MAX_WAITING = 1_000;

export function latestEvents(waiting: readonly MemberEvent[], event: MemberEvent): MemberEvent[] {
  if (waiting.length < MAX_WAITING) return [...waiting, event];
  const [first, ...others] = waiting;
  // The notice takes a place itself: so the first time two are lost.
  const lost = first?.type === "dropped" ? first.events + 1 : 2;
  return [{ type: "dropped", events: lost }, ...others.slice(1), event];
}

/** Another member is of another group, or is of this one again. */
export const refusalEvent = (node: NodeId, found: Disagreement | null): MemberEvent =>
  found === null
    ? { type: "node-accepted", node }
    : { type: "node-refused", node, reason: found.reason, why: found.detail };

export const changeEvent = ({ members, voters, revision }: MemberList): MemberEvent => ({
  type: "members-changed",
  members: members.map(({ member }) => member),
  voters,
  revision,
});
