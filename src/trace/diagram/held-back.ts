/**
 * What nodes hold back, as tracks that hang from their life lines: each begins where a message is received and ends where it
 * is delivered. A track keeps its row; where a node holds more than there are rows for, the last row says how many more.
 */
import type { NodeId, View } from "../../core/protocol.ts";
import type { Standing, Standings } from "../standing.ts";
import type { Step } from "../steps.ts";

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

export const ROWS = 4;
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
