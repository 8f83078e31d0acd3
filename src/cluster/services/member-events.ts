/**
 * A member's events, for readers that read at their own pace. The latest events are retained, and the number of lost
 * events is reported.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { MemberList } from "../../protocols/service/coordination-service/member-words.ts";
import type { Disagreement } from "../../runtime/transport/identity.ts";
import type { MemberEvent } from "./api.ts";

const MAX_WAITING = 1_000;

/** Adds an event. If there are too many, drops the oldest event and counts it. */
export function latestEvents(waiting: readonly MemberEvent[], event: MemberEvent): MemberEvent[] {
  if (waiting.length < MAX_WAITING) return [...waiting, event];
  const [first, ...others] = waiting;
  // The `dropped` event itself takes a slot, so two events are lost the first time.
  const lost = first?.type === "dropped" ? first.events + 1 : 2;
  return [{ type: "dropped", events: lost }, ...others.slice(1), event];
}

/** Returns the event for a node whose messages this member refuses or accepts again. */
export const refusalEvent = (node: NodeId, found: Disagreement | null): MemberEvent =>
  found === null
    ? { type: "node-accepted", node }
    : { type: "node-refused", node, reason: found.reason, why: found.detail };

/** Returns the event for a changed member list. */
export const changeEvent = ({ members, voters, revision }: MemberList): MemberEvent => ({
  type: "members-changed",
  members: members.map(({ member }) => member),
  voters,
  revision,
});
