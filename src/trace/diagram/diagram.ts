/**
 * A run as a space-time diagram that no paper has been chosen for: lanes, what happens at them, messages between them, and
 * what lasts. Plain data from trace entries; SVG and terminal draw it, each with its own sense of space.
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
  /** What nodes hold back, from point to point. */
  readonly heldBack: readonly Track[];
}

/** One step: what reached a node, and all that it led to there. */
export interface Point {
  readonly step: Step;
  readonly entries: readonly TraceEntry[];
  /** How the node stood, and how it stands from here on. */
  readonly before: Standing;
  readonly after: Standing;
  /** Null where nothing happens at the node, but a message to it is lost. */
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

/** `[2 0 1]`: a component per lane; empty without a clock. */
export function clockText(clock: VectorClock | null, lanes: readonly NodeId[]): string {
  if (clock === null) return "";
  return `[${lanes.map((node) => clock[node] ?? 0).join(" ")}]`;
}

export interface Track {
  readonly node: NodeId;
  /** The message's id, or how many more are held. */
  readonly text: string;
  /** Counted downwards from the life line. */
  readonly row: number;
  /** When it is held: in places of a list of steps, or in milliseconds. Null where it began before, or lasts. */
  readonly from: number | null;
  readonly to: number | null;
  readonly isSurplus: boolean;
}

const ROWS = 4;
/** From one row to the next. */
export const TRACK_PITCH = 11;

interface HoldingStep {
  readonly step: Step;
  /** How its node stands from here on. */
  readonly after: Standing;
}

/** From step to step. */
export function tracksOf(before: Standings, steps: readonly HoldingStep[]): Track[] {
  return [...before].flatMap(([node, standing]) => {
    const queue = new HoldBackQueue(node, ROWS);
    queue.become(heldBy(standing.view), null);
    for (const [index, { step, after }] of steps.entries())
      if (step.node === node) queue.become(after.condition === "down" ? [] : heldBy(after.view), index);
    return queue.end();
  });
}

/** And certificates, each as full as it is: from one signature to the next. One without any is not drawn. */
function heldBy(view: View | null): readonly string[] {
  const { held = [], certificates = [] } = view ?? {};
  const filled = certificates.filter(({ signed }) => signed.length > 0);
  return [...held, ...filled.map(({ of, signed, needed }) => `${of}: ${signed.length}/${needed}`)];
}

/** How far below its life line each node's tracks reach. */
export function depthsOf(tracks: readonly Track[]): ReadonlyMap<NodeId, number> {
  const depths = new Map<NodeId, number>();
  for (const { node, row } of tracks) depths.set(node, Math.max(depths.get(node) ?? 0, (row + 1) * TRACK_PITCH + 2));
  return depths;
}

/** One node's hold-back queue as it changes. */
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

  /** @param at null: since before. */
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

  /** What is held still lasts. */
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

/** @param answers by a request's short name that of its answer. Places of tracks are those of the steps. */
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
  /** −Infinity where it began before anything is known. */
  readonly from: number;
  /** Infinity where it still lasts. */
  readonly to: number;
  readonly value: T;
}

/** What changes come to: neighbours that are the same are one span, and what lasts no time is none. `changes` ascend. */
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
