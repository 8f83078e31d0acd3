/**
 * A run as a space-time diagram, independent of its layout: lanes, points on them, messages between them, and tracks. It is
 * plain data made from trace entries. The SVG and terminal renderers lay it out, each in its own way.
 */
import type { VectorClock } from "../../core/clocks.ts";
import type { NodeId, View } from "../../core/protocol.ts";
import type { TraceEntry } from "../entry.ts";
import type { Excerpt } from "../excerpt.ts";
import { nameOf } from "../log.ts";
import { type Standing, type Standings, standingAfter } from "../standing.ts";
import { type Flight, flightsOf, type Step } from "../steps.ts";

export interface Diagram {
  /** From top to bottom, or from left to right. */
  readonly lanes: readonly NodeId[];
  /** In the order of the steps. */
  readonly points: readonly Point[];
  readonly arrows: readonly Flight[];
  /** The messages that nodes hold back, from point to point. */
  readonly heldBack: readonly Track[];
}

/** One step: an input that reached a node, and everything it caused there. */
export interface Point {
  readonly step: Step;
  readonly entries: readonly TraceEntry[];
  /** The node's standing before and after the step. */
  readonly before: Standing;
  readonly after: Standing;
  /** Null for a lost message to the node, which is not a step of the node. */
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

/** For example `[2 0 1]`, with one component per lane. Empty without a clock. */
export function clockText(clock: VectorClock | null, lanes: readonly NodeId[]): string {
  if (clock === null) return "";
  return `[${lanes.map((node) => clock[node] ?? 0).join(" ")}]`;
}

export interface Track {
  readonly node: NodeId;
  /** The message's id, or how many more messages are held. */
  readonly text: string;
  /** The row below the life line, counted downwards. */
  readonly row: number;
  /** When the message is held, as positions in a list of steps or in milliseconds. Null if it began earlier, or has not ended. */
  readonly from: number | null;
  readonly to: number | null;
  readonly isSurplus: boolean;
}

const ROWS = 4;
/** The distance between rows. */
export const TRACK_PITCH = 11;

interface HoldingStep {
  readonly step: Step;
  /** The node's standing after the step. */
  readonly after: Standing;
}

/** The tracks of all nodes, from step to step. */
export function tracksOf(before: Standings, steps: readonly HoldingStep[]): Track[] {
  return [...before].flatMap(([node, standing]) => {
    const queue = new HoldBackQueue(node, ROWS);
    queue.become(heldBy(standing.view), null);
    for (const [index, { step, after }] of steps.entries())
      if (step.node === node) queue.become(after.condition === "down" ? [] : heldBy(after.view), index);
    return queue.end();
  });
}

/** Held messages and certificates. A certificate with at least one signature has an item for each number of signatures. */
function heldBy(view: View | null): readonly string[] {
  const { held = [], certificates = [] } = view ?? {};
  const filled = certificates.filter(({ signed }) => signed.length > 0);
  return [...held, ...filled.map(({ of, signed, needed }) => `${of}: ${signed.length}/${needed}`)];
}

/** How far below its life line each node's tracks extend. */
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
  /** By row. */
  readonly #open: ({ readonly id: string; readonly from: number | null } | null)[] = [];
  #surplus: { readonly from: number | null; readonly most: number } | null = null;

  constructor(node: NodeId, rows: number) {
    this.#node = node;
    this.#rows = rows;
  }

  /** @param at null if before the beginning */
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

  /** Ends the queue. Messages still held have no end. */
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

/** @param answers the short name of the answer, by the short name of the request. Positions of tracks are positions of steps. */
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

export interface Span<T> {
  /** −Infinity if it began before the first change. */
  readonly from: number;
  /** Infinity if it has not ended. */
  readonly to: number;
  readonly value: T;
}

/**
 * Turns changes into spans: equal neighbors are joined, and spans without duration are dropped. `changes` must be in ascending
 * order.
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
