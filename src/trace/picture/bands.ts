/**
 * Cuts a long picture into bands, as a musical score is divided into systems: between marks, crossing as few messages
 * as possible, and not through long texts. The part to the right of a cut is moved until there is space for the texts
 * to the left of it. Finally, all bands are stretched to the same width.
 */
import { STUB_PX } from "./arrows.ts";
import { endOf, LEAD_PX, REPEAT_PX, type Timeline } from "./timeline.ts";

const MARK_COST = 400;
const MESSAGE_COST = 12;
/** How far marks and arrowheads extend from their position. */
const REACH_PX = 10;
/** The maximum stretch factor for the last band. If it would need more, it stays short. */
const MOST_STRETCH = 1.6;

interface Cut {
  readonly x: number;
  /** How far the part to the right of the cut is moved. */
  readonly shift: number;
}

/**
 * Returns the timeline with its parts moved apart, and the edges of the bands from left to right. There is one more
 * edge than there are bands.
 */
export function banded(timeline: Timeline, bandWidth: number): { timeline: Timeline; edges: number[] } {
  const end = rightEnd(timeline) + (timeline.loopX === null ? LEAD_PX : REPEAT_PX);
  const { costs, reaches } = survey(timeline, end);
  const cuts: Cut[] = [];
  for (let left = -LEAD_PX; end - left > bandWidth; ) {
    const rest = end - left;
    const even = rest / Math.ceil(rest / bandWidth);
    const latest = Math.floor(Math.min(left + bandWidth, left + even * 1.15));
    const shiftAt = (x: number): number => Math.max(0, (reaches[x] ?? x) - x);
    const costAt = (x: number): number =>
      (costs[x] ?? 0) + shiftAt(x) + (x + shiftAt(x) > left + bandWidth ? MARK_COST * REACH_PX : 0);
    let best = latest;
    for (let x = latest; x >= left + even * 0.75; x--) if (costAt(x) < costAt(best)) best = x;
    cuts.push({ x: best, shift: shiftAt(best) });
    left = best;
  }
  const moved = (x: number): number => cuts.reduce((at, cut) => (x >= cut.x ? at + cut.shift : at), x);
  const edges = [-LEAD_PX, ...cuts.map(({ x }) => moved(x)), moved(end)];
  const { justified, justifiedEdges } = justification(edges);
  return { timeline: shifted(timeline, (x) => justified(moved(x))), edges: justifiedEdges };
}

/** Stretches all bands to the width of the widest one. The gaps between labels and marks can only grow. */
function justification(edges: readonly number[]): { justified: (x: number) => number; justifiedEdges: number[] } {
  const widths = edges.slice(1).map((right, index) => right - (edges[index] as number));
  const widest = Math.max(...widths);
  const factors = widths.map((width, index) => {
    const factor = widest / width;
    return index === widths.length - 1 && factor > MOST_STRETCH ? 1 : factor;
  });
  const justifiedEdges = [edges[0] as number];
  for (const [index, width] of widths.entries())
    justifiedEdges.push((justifiedEdges[index] as number) + width * (factors[index] as number));
  const justified = (x: number): number => {
    const beyond = edges.findIndex((edge, index) => index > 0 && x < edge);
    const band = (beyond === -1 ? edges.length - 1 : beyond) - 1;
    return (justifiedEdges[band] as number) + (x - (edges[band] as number)) * (factors[band] as number);
  };
  return { justified, justifiedEdges };
}

function rightEnd({ width, flights, xOfEntry }: Timeline): number {
  return flights.reduce((right, { sent, ended }) => {
    const stub = sent === null ? 0 : (xOfEntry[sent] ?? 0) + STUB_PX + 2 * REACH_PX;
    return Math.max(right, stub, ended === null ? 0 : (xOfEntry[ended] ?? 0) + REACH_PX);
  }, width);
}

/**
 * Returns, for each pixel, the number of lines that a cut there would cross and where the texts that begin to the left
 * of it end.
 */
function survey(
  { steps, breaks, flights, xOfEntry, loopX }: Timeline,
  end: number,
): { costs: number[]; reaches: number[] } {
  const size = Math.ceil(end) + 2;
  const changes = new Array<number>(size).fill(0);
  const reaches = new Array<number>(size).fill(0);
  const clamp = (x: number): number => Math.min(Math.max(x, 0), size - 1);
  const add = (left: number, right: number, cost: number): void => {
    const [from, to] = [clamp(Math.floor(left)), clamp(Math.ceil(right) + 1)];
    changes[from] = (changes[from] ?? 0) + cost;
    changes[to] = (changes[to] ?? 0) - cost;
  };
  for (const step of steps) {
    add(step.x - REACH_PX, step.x + REACH_PX, MARK_COST);
    const begin = clamp(Math.ceil(step.x));
    reaches[begin] = Math.max(reaches[begin] ?? 0, Math.ceil(endOf(step)) + 4);
  }
  for (const { sent, ended } of flights)
    if (sent !== null && ended !== null) add(xOfEntry[sent] ?? 0, xOfEntry[ended] ?? 0, MESSAGE_COST);
  for (const x of breaks) add(x - REACH_PX, x + REACH_PX, MARK_COST);
  if (loopX !== null) add(loopX - REPEAT_PX, loopX, MARK_COST);
  let [cost, reach] = [0, 0];
  return {
    costs: changes.map((change) => {
      cost += change;
      return cost;
    }),
    reaches: reaches.map((each) => {
      reach = Math.max(reach, each);
      return reach;
    }),
  };
}

function shifted(timeline: Timeline, moved: (x: number) => number): Timeline {
  const { steps, xOfEntry, moments, breaks, loopX } = timeline;
  return {
    ...timeline,
    steps: steps.map((step) => {
      const by = moved(step.x) - step.x;
      const label = step.label === null ? null : { ...step.label, x: step.label.x + by };
      return { ...step, x: step.x + by, marksX: step.marksX + by, label };
    }),
    xOfEntry: xOfEntry.map(moved),
    moments: moments.map(({ at, x }) => ({ at, x: moved(x) })),
    breaks: breaks.map(moved),
    loopX: loopX === null ? null : moved(loopX),
  };
}
