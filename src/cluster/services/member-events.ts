/** Events for readers at their own pace: the latest are kept, and the number of lost ones is reported. */
import type { NodeId } from "../../core/protocol.ts";
import type { MemberList } from "../../protocols/service/coordination-service/member-words.ts";
import type { Disagreement } from "../../runtime/transport/identity.ts";
import type { MemberEvent } from "./api.ts";

const MAX_WAITING = 1_000;

export function latestEvents(waiting: readonly MemberEvent[], event: MemberEvent): MemberEvent[] {
  if (waiting.length < MAX_WAITING) return [...waiting, event];
  const [first, ...others] = waiting;
  // The `dropped` event takes a slot itself, so two events are lost the first time.
  const lost = first?.type === "dropped" ? first.events + 1 : 2;
  return [{ type: "dropped", events: lost }, ...others.slice(1), event];
}

/** This member refuses the messages of another node, or accepts them again. */
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
