/**
 * A run as a space-time diagram that no paper has been chosen for: lanes, what happens at them, messages between them, and
 * what lasts. Plain data from trace entries; SVG and terminal draw it, each with its own sense of space.
 */
import type { VectorClock } from "../../core/clocks.ts";
import type { NodeId } from "../../core/protocol.ts";
import type { TraceEntry } from "../entry.ts";
import type { Excerpt } from "../excerpt.ts";
import { type Flight, flightsOf } from "../flights.ts";
import { type Standing, standingAfter } from "../standing.ts";
import type { Step } from "../steps.ts";
import { type Track, tracksOf } from "./held-back.ts";

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
