/** The updates that the service sends to a multicast whose group it manages. */
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

/** An update for a multicast. */
export type GroupUpdate =
  /** Updates from this node's session. */
  | { type: "began"; session: SessionId }
  | { type: "over"; session: SessionId }
  /** Updates from the log. */
  | { type: "led"; leader: NodeId | null }
  /** The operation failed, or its outcome is unknown. The multicast may request it again. */
  | { type: "notDone"; operation: GroupOperation }
  /** Updates from the replica, in log order. */
  | { type: "grouped"; name: string; view: Revision; members: GroupMember[] }
  | { type: "said"; name: string; from: NodeId; text: string; revision: Revision }
  /** The replica has installed a snapshot, so some earlier events will not be reported. */
  | { type: "restored" };

/** The maximum number of members in a group. */
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
