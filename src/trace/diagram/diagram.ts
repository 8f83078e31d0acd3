/**
 * A run as a space-time diagram, independent of its layout: lanes, points on them, messages between them, and tracks.
 * The diagram is plain data derived from trace entries. The SVG and terminal renderers each lay it out in their own
 * way.
 */
import type { VectorClock } from "../../core/clocks.ts";
import type { NodeId, View } from "../../core/protocol.ts";
import type { TraceEntry } from "../entry.ts";
import type { Excerpt } from "../excerpt.ts";
import { nameOf } from "../log.ts";
import { type Standing, type Standings, standingAfter } from "../standing.ts";
import { type Flight, flightsOf, type Step } from "../steps.ts";

export interface Diagram {
  /** The lanes, from top to bottom or from left to right. */
  readonly lanes: readonly NodeId[];
  /** The points, in the order of the steps. */
  readonly points: readonly Point[];
  readonly arrows: readonly Flight[];
  /** The messages that nodes hold back. Positions are indexes of points. */
  readonly heldBack: readonly Track[];
}

/** One step: an input that reached a node, and everything it caused there. */
export interface Point {
  readonly step: Step;
  readonly entries: readonly TraceEntry[];
  /** The node's standing before and after the step. */
  readonly before: Standing;
  readonly after: Standing;
  /** The vector clock. Null for the loss of a message to the node, which is not one of the node's steps. */
  readonly clock: VectorClock | null;
}

export function diagramOf({ header, entries, before, steps, clocks }: Excerpt): Diagram {
  const standings = new Map<NodeId, Standing>(before);
  const points = steps.map((step): Point => {
    const own = step.indices.map((index) => entries[index] as TraceEntry);
    const standing = standings.get(step.node) as Standing;
    const after = own.reduce(standingAfter, standing);
    standings.set(step.node, after);
    const eventful = step.indices.find((index) => entries[index]?.kind !== "lost");
    return {
      step,
      entries: own,
      before: standing,
      after,
      clock: eventful === undefined ? null : (clocks[eventful] ?? {}),
    };
  });
  return { lanes: header.nodes, points, arrows: flightsOf(entries), heldBack: tracksOf(before, points) };
}

/** Formats a clock with one component per lane, such as `[2 0 1]`. Returns an empty string without a clock. */
export function clockText(clock: VectorClock | null, lanes: readonly NodeId[]): string {
  if (clock === null) return "";
  return `[${lanes.map((node) => clock[node] ?? 0).join(" ")}]`;
}

/** A message that a node holds back for some time. */
export interface Track {
  readonly node: NodeId;
  /** The message's id, or the number of additional held messages. */
  readonly text: string;
  /** The row below the life line. Rows are counted downward. */
  readonly row: number;
  /**
   * When the message is held, as positions in a list of steps or in milliseconds. `from` is null if that began before
   * the list, `to` if it has not ended.
   */
  readonly from: number | null;
  readonly to: number | null;
  readonly isSurplus: boolean;
}

const ROWS = 4;
/** The distance between two rows. */
export const TRACK_PITCH = 11;

interface HoldingStep {
  readonly step: Step;
  readonly after: Standing;
}

/** Returns the tracks of all nodes. Positions are indexes of steps. */
export function tracksOf(before: Standings, steps: readonly HoldingStep[]): Track[] {
  return [...before].flatMap(([node, standing]) => {
    const queue = new HoldBackQueue(node, ROWS);
    queue.become(heldBy(standing.view), null);
    for (const [index, { step, after }] of steps.entries())
      if (step.node === node) queue.become(after.condition === "down" ? [] : heldBy(after.view), index);
    return queue.end();
  });
}

/**
 * Returns labels for the held messages and for the certificates that have at least one signature. A certificate's label
 * contains its number of signatures, so each new signature starts a new track.
 */
function heldBy(view: View | null): readonly string[] {
  const { held = [], certificates = [] } = view ?? {};
  const filled = certificates.filter(({ signed }) => signed.length > 0);
  return [...held, ...filled.map(({ of, signed, needed }) => `${of}: ${signed.length}/${needed}`)];
}

/** Returns how far each node's tracks extend below its life line. */
export function depthsOf(tracks: readonly Track[]): ReadonlyMap<NodeId, number> {
  const depths = new Map<NodeId, number>();
  for (const { node, row } of tracks) depths.set(node, Math.max(depths.get(node) ?? 0, (row + 1) * TRACK_PITCH + 2));
  return depths;
}

/** One node's hold-back queue over time. */
export class HoldBackQueue {
  readonly #node: NodeId;
  readonly #rows: number;
  readonly #tracks: Track[] = [];
  /** The open tracks, by row. */
  readonly #open: ({ readonly id: string; readonly from: number | null } | null)[] = [];
  #surplus: { readonly from: number | null; readonly most: number } | null = null;

  constructor(node: NodeId, rows: number) {
    this.#node = node;
    this.#rows = rows;
  }

  /** Changes the held messages. @param at null for a time before the beginning */
  become(held: readonly string[], at: number | null): void {
    for (const [row, open] of this.#open.entries()) if (open !== null && !held.includes(open.id)) this.#close(row, at);
    const shown = new Set(this.#open.map((open) => open?.id));
    const waiting = held.filter((id) => !shown.has(id));
    for (let row = 0; row < this.#rows; row++) {
      const [id] = waiting;
      if (id === undefined || (this.#open[row] ?? null) !== null) continue;
      this.#open[row] = { id, from: at };
      waiting.shift();
    }
    const more = waiting.length;
    const since = this.#surplus === null ? at : this.#surplus.from;
    if (more > 0) this.#surplus = { from: since, most: Math.max(this.#surplus?.most ?? 0, more) };
    else this.#closeSurplus(at);
  }

  /** Ends the queue and returns all tracks. Tracks of messages that are still held have no end. */
  end(): Track[] {
    this.become([], null);
    return this.#tracks;
  }

  #close(row: number, to: number | null): void {
    const open = this.#open[row];
    if (open === null || open === undefined) return;
    this.#tracks.push({ node: this.#node, text: open.id, row, from: open.from, to, isSurplus: false });
    this.#open[row] = null;
  }

  #closeSurplus(to: number | null): void {
    if (this.#surplus === null) return;
    const { from, most } = this.#surplus;
    this.#tracks.push({ node: this.#node, text: `+${most}`, row: this.#rows, from, to, isSurplus: true });
    this.#surplus = null;
  }
}

/**
 * Returns the tracks of withheld replies. A track's positions are indexes of steps.
 * @param answers maps the short name of a request to the short name of its reply.
 */
export function withheldIn(
  steps: readonly Pick<Step, "node" | "indices">[],
  entries: readonly TraceEntry[],
  answers: Readonly<Record<string, string>>,
): Track[] {
  const answerNames = new Set(Object.values(answers));
  if (answerNames.size === 0) return [];
  const nodes = new Map<NodeId, { asking: readonly NodeId[]; readonly queue: HoldBackQueue }>();
  for (const [place, { node, indices }] of steps.entries()) {
    const own = indices.map((index) => entries[index] as TraceEntry);
    const known = nodes.get(node) ?? { asking: [], queue: new HoldBackQueue(node, ROWS) };
    nodes.set(node, known);
    const asked = own.flatMap((entry) =>
      entry.kind === "receive" && Object.hasOwn(answers, nameOf(entry.message).short) ? [entry.from] : [],
    );
    const answered = new Set(
      own.flatMap((entry) => (entry.kind === "send" && answerNames.has(nameOf(entry.message).short) ? [entry.to] : [])),
    );
    const isDown = own.some(({ kind }) => kind === "crash");
    known.asking = isDown ? [] : [...new Set([...known.asking, ...asked])].filter((each) => !answered.has(each));
    known.queue.become(
      known.asking.map((each) => `${each}’s request`),
      place,
    );
  }
  return [...nodes.values()].flatMap(({ queue }) => queue.end());
}

/** A value and the time during which it holds. */
export interface Span<T> {
  /** When the span begins. −Infinity if it began before the first change. */
  readonly from: number;
  /** When the span ends. Infinity if it has not ended. */
  readonly to: number;
  readonly value: T;
}

/**
 * Converts changes into spans: equal neighbors are joined, and spans without duration are dropped. `changes` must be in
 * ascending order.
 */
export function spansOf<T>(
  changes: readonly { readonly at: number; readonly value: T }[],
  end: number,
  isSame: (a: T, b: T) => boolean,
): Span<T>[] {
  const spans: Span<T>[] = [];
  for (const [index, { at: from, value }] of changes.entries()) {
    const to = changes[index + 1]?.at ?? end;
    const last = spans.at(-1);
    if (last !== undefined && isSame(last.value, value)) spans[spans.length - 1] = { ...last, to };
    else if (to > from) spans.push({ from, to, value });
  }
  return spans;
}
