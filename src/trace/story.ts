/** A trace in words, one line per entry: what golden tests compare and a terminal shows. */
import { canonical } from "../core/plain.ts";
import type { TraceEntry } from "./entry.ts";

/** One entry as a line such as `   180.0  node 4  sends election to 7`. Times are in milliseconds. */
export function storyLine(entry: TraceEntry): string {
  return `${entry.at.toFixed(1).padStart(8)}  node ${entry.node}  ${deed(entry)}`;
}

/** What a node does or suffers, without saying which: `sends election to 7`. */
export function deed(entry: TraceEntry): string {
  switch (entry.kind) {
    case "start":
      return "starts";
    case "crash":
      return "crashes";
    case "send":
      return `sends ${phrase(entry.message)} to ${entry.to}`;
    case "receive":
      return `receives ${phrase(entry.message)} from ${entry.from}`;
    case "lost":
      return `loses a message to ${entry.to} (${entry.why})`;
    case "timeout":
      return `times out: ${entry.timer}`;
    case "command":
      return `is told: ${phrase(entry.command)}`;
    case "event":
      return `says: ${phrase(entry.event)}`;
    case "choice":
      return `chooses ${entry.label}: ${plain(entry.option)}`;
    case "pause":
      return "pauses";
    case "resume":
      return "goes on";
    case "fault":
      return `suffers: ${entry.what}`;
    case "gap":
      return `(${entry.dropped} entries are missing)`;
    case "view":
      return `is now ${entry.view.role}${entry.view.leader === undefined ? "" : `, leader ${entry.view.leader ?? "unknown"}`}`;
  }
}

/** `election`, `alive beat 3`, `election.coordinator`: type and fields; what a part of an assembly says carries its name. */
export function phrase({ type, ...fields }: { type: string; body?: unknown }): string {
  if (fields.body !== undefined) return `${type}.${phrase(fields.body as { type: string })}`;
  return [type, ...Object.entries(fields).map(([name, value]) => `${name} ${plain(value)}`)].join(" ");
}

const plain = (value: unknown): string => (typeof value === "string" ? value : canonical(value));
