/** Updates that a service reports to a multicast whose group it manages. */
import type { NodeId } from "../../../core/protocol.ts";
import { list, natural, nullable, type Shapes, struct, text, variants } from "../../../core/shape.ts";
import {
  type GroupMember,
  type GroupOperation,
  groupOperationShapes,
  MAX_NAME_BYTES,
  MAX_VALUE_BYTES,
  type Revision,
  type SessionId,
} from "./operations.ts";

export type GroupUpdate =
  /** From the session of this node. */
  | { type: "began"; session: SessionId }
  | { type: "over"; session: SessionId }
  /** From the log. */
  | { type: "led"; leader: NodeId | null }
  /** The operation has failed, or its outcome is unknown; it may be requested again. */
  | { type: "notDone"; operation: GroupOperation }
  /** From the replica, in the order of the log. */
  | { type: "grouped"; name: string; view: Revision; members: GroupMember[] }
  | { type: "said"; name: string; from: NodeId; text: string; revision: Revision }
  /** It received a snapshot: earlier events are not reported. */
  | { type: "restored" };

export const MAX_GROUP_MEMBERS = 10_000;

export const groupUpdateShapes: Shapes<GroupUpdate> = {
  began: { session: natural },
  over: { session: natural },
  led: { leader: nullable(natural) },
  notDone: { operation: variants<GroupOperation>(groupOperationShapes) },
  grouped: {
    name: text(MAX_NAME_BYTES),
    view: natural,
    members: list(
      struct<GroupMember>({ session: natural, member: natural, wait: natural, spoken: natural }),
      MAX_GROUP_MEMBERS,
    ),
  },
  said: { name: text(MAX_NAME_BYTES), from: natural, text: text(MAX_VALUE_BYTES), revision: natural },
  restored: {},
};
