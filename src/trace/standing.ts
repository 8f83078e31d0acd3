/** The standing of a node at a moment of a trace: whether its process runs, and its view. */
import { equal } from "../core/plain.ts";
import type { NodeId, View } from "../core/protocol.ts";
import type { TraceEntry } from "./entry.ts";

export interface Standing {
  readonly condition: "up" | "down" | "paused";
  /** Null while nothing is known about it. */
  readonly view: View | null;
}

export type Standings = ReadonlyMap<NodeId, Standing>;

/**
 * The standings before the trace began, derived from the first entry of each node. A node without entries is down. A recording
 * may begin with a node that sends and later starts without a crash: the end of its process was not recorded.
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

/** The view of a real process also has its position among the others, which viewers draw as a figure. */
type Placed = View & { readonly position?: object };

/**
 * How two views differ: not at all, only in the log, only in held messages, certificates or position, or in the node's
 * standing. This is called at every step of a traced run.
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
