/**
 * Whom a member says it follows. Algorithms tell when they learn of a leader, not that they no longer know of one, or
 * know of the same one again: their view shows that.
 */
import type { NodeId } from "../../core/protocol.ts";

/** How an algorithm stands after a step. */
interface Standing {
  readonly self: NodeId;
  /** Whom its view says that it follows. */
  readonly leader: NodeId | null;
  /** Whether all its events have been told. */
  readonly isSettled: boolean;
}

/**
 * Whom to say that this member follows. Its own leadership begins and ends with events alone.
 * @param said whom it has said last.
 * @param elected whom the last event named, with the token that a leader who is followed again has still.
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
