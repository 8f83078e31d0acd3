/** The messages of a trace with both their ends, which stand in two entries. */
import type { NodeId, Tagged } from "../core/protocol.ts";
import type { LossReason, MessageId, TraceEntry } from "./entry.ts";

/** One way of one message. A message that was duplicated on its way has several. */
export interface Flight {
  readonly id: MessageId;
  readonly from: NodeId;
  readonly to: NodeId;
  readonly message: Tagged;
  /** Index of the entry; null where the trace begins after the sending. */
  readonly sent: number | null;
  /** Index of the receipt or loss; null while it is on its way. */
  readonly ended: number | null;
  readonly lost: LossReason | null;
}

/** In the order in which the messages were first heard of. Entries must be in order. */
export function flightsOf(entries: readonly TraceEntry[]): Flight[] {
  const flights: Flight[] = [];
  const places = new Map<MessageId, number>();
  for (const [index, entry] of entries.entries()) {
    if (entry.kind === "send") {
      const { id, node: from, to, message } = entry;
      places.set(id, flights.length);
      flights.push({ id, from, to, message, sent: index, ended: null, lost: null });
    } else if (entry.kind === "receive" || entry.kind === "lost") {
      const place = places.get(entry.id);
      const known = place === undefined ? undefined : flights[place];
      const lost = entry.kind === "lost" ? entry.why : null;
      if (place !== undefined && known !== undefined && known.ended === null)
        flights[place] = { ...known, ended: index, lost };
      else if (known !== undefined) flights.push({ ...known, ended: index, lost });
      else if (entry.kind === "receive") {
        const { id, from, node: to, message } = entry;
        places.set(id, flights.length);
        flights.push({ id, from, to, message, sent: null, ended: index, lost: null });
      }
    }
  }
  return flights;
}
