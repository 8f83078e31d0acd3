/** What a scenario calls its messages, for pictures of it. */
import type { Tagged, View } from "../../core/protocol.ts";
import { rewrapped, unwrapped } from "../../core/wrapping.ts";
import type { TraceEntry } from "../../trace/entry.ts";
import { deliveredId } from "../../trace/naming.ts";
import type { Scenario } from "./schema.ts";

/** The same entries, in which deliveries and what is held back have those names. */
export function labelled(entries: readonly TraceEntry[], { labels }: Scenario): readonly TraceEntry[] {
  if (Object.keys(labels).length === 0) return entries;
  const nameOf = (id: string): string => labels[id] ?? id;
  return entries.map((entry) => {
    if (entry.kind === "view") return { ...entry, view: viewWith(entry.view, nameOf) };
    const id = entry.kind === "event" ? deliveredId(entry.event) : null;
    return entry.kind === "event" && id !== null ? { ...entry, event: withId(entry.event, nameOf(id)) } : entry;
  });
}

const viewWith = (view: View, nameOf: (id: string) => string): View =>
  view.held === undefined ? view : { ...view, held: view.held.map(nameOf) };

/** In the part of an assembly that said it. */
function withId(event: Tagged, id: string): Tagged {
  return rewrapped(event, { ...unwrapped(event), id });
}
