/**
 * The leader that a member says it follows. Algorithms tell when they learn of a leader, not that they no longer know of one, or
 * know of the same one again: their view shows that.
 */
import type { NodeId } from "../../core/protocol.ts";

/** How an algorithm stands after a step. */
export interface Standing {
  readonly self: NodeId;
  /** The leader that its view names. */
  readonly leader: NodeId | null;
  /** Whether all its events have been told. */
  readonly isSettled: boolean;
}

/**
 * The leader that this member is said to follow. Its own leadership begins and ends with events alone.
 * @param said the leader that it has said last.
 * @param elected the leader that the last event named, with the token that a leader who is followed again has still.
 */
export function leaderToSay(
  said: NodeId | null,
  elected: NodeId | null,
  { self, leader, isSettled }: Standing,
): NodeId | null {
  if (said === self || leader === self) return said;
  if (leader === null) return null;
  return leader === elected && isSettled ? leader : said;
}
