/**
 * Exports a log for ShiViz: the regular expression that parses it, the (empty) delimiter between executions, then two
 * lines per event: its description, and `<node> <vector clock>`. ShiViz requires each node's own count to be 1, 2, 3 …,
 * so each step is one event, and clocks are counted from the beginning of the export.
 */
import type { VectorClock } from "../../core/clocks.ts";
import type { TraceEntry } from "../entry.ts";
import type { Excerpt } from "../excerpt.ts";
import { actionText } from "../log.ts";
import { vectorClocks } from "../steps.ts";

export const SHIVIZ_PARSER = "(?<event>.*)\\n(?<host>\\S*) (?<clock>{.*})";

export function shiviz({ entries }: Pick<Excerpt, "entries">): string {
  const clocks = vectorClocks(entries);
  const events = new Map<string, { readonly clock: VectorClock; readonly entries: TraceEntry[] }>();
  for (const [index, entry] of entries.entries()) {
    const clock = clocks[index] as VectorClock;
    const key = `${entry.node} ${clock[entry.node]}`;
    const known = events.get(key);
    if (known === undefined) events.set(key, { clock, entries: [entry] });
    else known.entries.push(entry);
  }
  const lines = [...events.values()].map(({ clock, entries }) => {
    const [first] = entries as [TraceEntry];
    const names = Object.entries(clock).map(([node, count]) => [`node${node}`, count]);
    return `${oneLine(entries.map(actionText).join("; "))}\nnode${first.node} ${JSON.stringify(Object.fromEntries(names))}\n`;
  });
  return `${SHIVIZ_PARSER}\n\n${lines.join("")}`;
}

/** Joins lines, because the parser expects each event's description on one line. */
const oneLine = (text: string): string => text.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ");
