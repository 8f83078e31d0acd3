/** The standing of a node at one point in a trace: its view, and whether its process is running. */
import { equal } from "../core/plain.ts";
import type { NodeId, View } from "../core/protocol.ts";
import type { TraceEntry } from "./entry.ts";

/** The condition of a node and its view. */
export interface Standing {
  readonly condition: "up" | "down" | "paused";
  /** The node's view. Null if it is unknown. */
  readonly view: View | null;
}

export type Standings = ReadonlyMap<NodeId, Standing>;

/**
 * Returns the standings before the trace began, derived from the first entry of each node. A node without entries is
 * down. At the beginning of a recording, a node may send and later start without a crash in between, because the end of
 * its process was not recorded.
 */
export function standingsBefore(nodes: readonly NodeId[], entries: readonly TraceEntry[]): Standings {
  const standings = new Map<NodeId, Standing>(nodes.map((node) => [node, { condition: "down", view: null }]));
  const told = new Set<NodeId>();
  for (const { node, kind } of entries) {
    if (told.has(node) || kind === "lost" || kind === "fault") continue;
    told.add(node);
    const condition = kind === "start" ? "down" : kind === "resume" ? "paused" : "up";
    standings.set(node, { condition, view: null });
    if (told.size === nodes.length) break;
  }
  return standings;
}

/** Returns the standing after one more entry at the node. */
export function standingAfter(standing: Standing, entry: TraceEntry): Standing {
  switch (entry.kind) {
    case "start":
      return { condition: "up", view: null };
    case "crash":
      return { condition: "down", view: null };
    case "pause":
      return { ...standing, condition: "paused" };
    case "resume":
      return { ...standing, condition: "up" };
    case "view":
      return { ...standing, view: entry.view };
    default:
      return standing;
  }
}

/** Whether the node considers itself the leader. */
export function leads(node: NodeId, { condition, view }: Standing): boolean {
  return condition !== "down" && view?.leader === node;
}

/** The view of a real process also contains its position among the other nodes, which viewers draw. */
type Placed = View & { readonly position?: object };

/**
 * Returns how two views differ: not at all, only in the log, only in held messages, certificates or position, or in the
 * node's standing. This function is called at every step of a traced run.
 */
export function differenceOf(
  before: Placed | null,
  after: Placed,
): "none" | "log" | "held" | "certificates" | "position" | "standing" {
  if (before === null || before.role !== after.role || before.leader !== after.leader || before.term !== after.term)
    return "standing";
  if (!areSame(before.held, after.held)) return "held";
  if (!areEqual(before.certificates, after.certificates)) return "certificates";
  if (!equal(before.position, after.position)) return "position";
  return before.log?.decided === after.log?.decided && before.log?.last === after.log?.last ? "none" : "log";
}

type Listed = readonly (string | NodeId)[] | undefined;
const areSame = (a: Listed, b: Listed): boolean =>
  a === b || (a?.length === b?.length && a?.every((id, index) => id === b?.[index]) === true);

function areEqual(a: View["certificates"], b: View["certificates"]): boolean {
  if (a === b) return true;
  if (a?.length !== b?.length) return false;
  return a?.every(({ of, signed }, at) => of === b?.[at]?.of && areSame(signed, b[at]?.signed)) === true;
}
