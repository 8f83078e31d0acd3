/** A run at one of its moments, as headlines are made of it. */
import type { NodeId } from "../core/protocol.ts";
import type { Scene } from "../protocols/index.ts";
import type { TraceEntry } from "../trace/entry.ts";
import { type Standing, standingAfter, standingsBefore } from "../trace/standing.ts";

/** After the first `count` entries. */
export function sceneAt(nodes: readonly NodeId[], entries: readonly TraceEntry[], count = entries.length): Scene {
  const standings = new Map<NodeId, Standing>(standingsBefore(nodes, entries));
  const events: { node: NodeId; event: Scene["events"][number]["event"] }[] = [];
  for (const entry of entries.slice(0, count)) {
    standings.set(entry.node, standingAfter(standings.get(entry.node) ?? { condition: "down", view: null }, entry));
    if (entry.kind === "event") events.push({ node: entry.node, event: entry.event });
  }
  const shown = [...standings].map(([node, standing]) => ({ node, ...standing }));
  return { nodes: shown.toSorted((a, b) => a.node - b.node), events };
}
