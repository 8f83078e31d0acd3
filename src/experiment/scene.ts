/** Scenes of a run. A scene contains the states and events at one moment, with a headline derived from them. */
import type { NodeId } from "../core/protocol.ts";
import { protocolNamed, rowsOf, type Scene } from "../protocols/index.ts";
import type { TraceEntry } from "../trace/entry.ts";
import type { Trace } from "../trace/file.ts";
import { type Presented, presented } from "../trace/presented.ts";
import { type Standing, type Standings, standingAfter, standingsBefore } from "../trace/standing.ts";

/** Returns the scene after the first `count` entries. */
export const sceneAt = (nodes: readonly NodeId[], entries: readonly TraceEntry[], count = entries.length): Scene =>
  new Scenes(nodes, entries).at(count);

/** The number of entries between two saved moments. */
const APART = 500;

interface Kept {
  readonly standings: Standings;
  /** The number of messages sent to other nodes so far. */
  readonly sent: number;
}

/**
 * The scenes of a run at many moments. The run is read once. After that, each moment requires replaying at most `APART`
 * entries.
 */
export class Scenes {
  readonly #entries: readonly TraceEntry[];
  readonly #kept: Kept[];
  readonly #events: Scene["events"];
  /** For each event, in ascending order, the number of entries up to and including the event. */
  readonly #countAtEvent: readonly number[];

  constructor(nodes: readonly NodeId[], entries: readonly TraceEntry[]) {
    this.#entries = entries;
    this.#kept = [{ standings: standingsBefore(nodes, entries), sent: 0 }];
    for (let count = APART; count <= entries.length; count += APART) this.#kept.push(this.#after(count));
    const events = entries.flatMap((entry, index) => (entry.kind === "event" ? [{ entry, count: index + 1 }] : []));
    this.#events = events.map(({ entry: { node, event } }) => ({ node, event }));
    this.#countAtEvent = events.map(({ count }) => count);
  }

  /** Returns the scene after the first `count` entries. */
  at(count: number): Scene {
    const shown = [...this.#after(count).standings].map(([node, standing]) => ({ node, ...standing }));
    const events = this.#events.slice(0, countUpTo(this.#countAtEvent, count));
    return { nodes: shown.toSorted((a, b) => a.node - b.node), events };
  }

  /** Returns the number of messages sent to other nodes in the first `count` entries. */
  sentUntil(count: number): number {
    return this.#after(count).sent;
  }

  #after(count: number): Kept {
    const place = Math.min(Math.floor(count / APART), this.#kept.length - 1);
    const { standings: before, sent: sentBefore } = this.#kept[place] as Kept;
    const standings = new Map<NodeId, Standing>(before);
    let sent = sentBefore;
    for (const entry of this.#entries.slice(place * APART, count)) {
      standings.set(entry.node, standingAfter(standings.get(entry.node) ?? { condition: "down", view: null }, entry));
      if (entry.kind === "send" && entry.to !== entry.node) sent += 1;
    }
    return { standings, sent };
  }
}

/** Counts the numbers that do not exceed `limit`, using binary search. */
function countUpTo(ascending: readonly number[], limit: number): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ascending[middle] as number) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Returns the trace with its protocol's rules for display applied.
 * @throws UsageError if the protocol is not registered
 */
export function asShown(trace: Trace): Presented {
  const { protocol, nodes, options } = trace.header;
  const { presentation } = protocolNamed(protocol);
  return presented(trace, { ...presentation, rows: rowsOf(presentation, nodes, options) });
}
