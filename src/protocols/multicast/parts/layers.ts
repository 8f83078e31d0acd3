/**
 * The layers of a multicast: an order stands over what carries its messages, which may stand over something else. What a
 * layer takes and what it says is the same for all of them, so that any stands over any (`over.ts`).
 */
import type { NodeId, Vocabulary } from "../../../core/protocol.ts";
import { list, natural, type Shapes } from "../../../core/shape.ts";

/** What every layer offers. `payload` is text from a user, or a message of the layer above. */
export interface Multicast<P = string> extends Vocabulary {
  command: { type: "send"; payload: P };
  /** `id` names a message of this layer in its view. A sender delivers its own, too. */
  event: { type: "delivered"; from: NodeId; payload: P; id: string };
}

/** There is no room for it, and nothing of it has been sent: said by layers whose group may stand still. */
export type Refusal<P> = { type: "refused"; payload: P };

/** What a layer says of its group to the one above it, after all that it has delivered before. */
export type GroupEvent =
  /** The group is about to change: nothing can be multicast until the next of these. */
  | { type: "blocked" }
  /**
   * The group has changed, and this node is in it. What has been delivered so far is all there was of the view before, the
   * same at every member that was in that one and is in this one.
   */
  | { type: "installed"; view: number; members: NodeId[] }
  /** This node is in the group no more. Others may have delivered less, more or in another order than it had at the end. */
  | { type: "ejected" };

/** The same as the layer above takes it; and how many of its own multicasts of this view all members have. */
export type GroupCommand =
  | { type: "block" }
  | { type: "install"; view: number; members: NodeId[] }
  | { type: "eject" }
  | { type: "stable"; count: number };

export const MAX_MEMBERS = 10_000;

export const groupCommandShapes: Shapes<GroupCommand> = {
  block: {},
  install: { view: natural, members: list(natural, MAX_MEMBERS) },
  eject: {},
  stable: { count: natural },
};
