/** Whether the members of a local cluster agree on who leads. */
import type { NodeId } from "../../core/protocol.ts";
import type { NodePicture } from "../feed.ts";

export interface Agreement {
  readonly leader: NodeId;
  /** Who holds it for the leader, the leader included. Ascending. */
  readonly agreed: readonly NodeId[];
}

/** Null unless every running member names the same leader, and that one runs. */
export function agreementOf(nodes: readonly NodePicture[]): Agreement | null {
  const running = nodes.filter((node) => node.process === "running");
  const leader = running[0]?.view?.leader ?? null;
  if (leader === null || running.some(({ view }) => view?.leader !== leader)) return null;
  const agreed = running.map(({ id }) => id);
  return agreed.includes(leader) ? { leader, agreed } : null;
}

/** Whether all are up and there is nothing left to agree on. */
export function isSettled(nodes: readonly NodePicture[]): boolean {
  const allUp = nodes.every(({ process, view }) => process === "running" && view !== null);
  const knowsLeaders = nodes.some(({ view }) => view?.leader !== undefined);
  return allUp && (!knowsLeaders || agreementOf(nodes) !== null);
}
