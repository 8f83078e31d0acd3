/**
 * Computes the geometry of the space-time diagram on one endless band; `bands` decides where to cut it. x increases
 * with time, each node has a life line, and units are pixels. This file does not draw anything.
 */
import type { NodeId } from "../../core/protocol.ts";
import { depthsOf, spansOf } from "../diagram/diagram.ts";
import type { Excerpt } from "../excerpt.ts";
import { leads, type Standing } from "../standing.ts";
import {
  type ArrowLabel,
  boxOfLabel,
  type LossLabel,
  type PlacedTrack,
  placeArrowLabels,
  placeLossLabels,
  placeTracks,
  trackBox,
} from "./arrow-labels.ts";
import { type Arrow, arrowsOf } from "./arrows.ts";
import { banded } from "./bands.ts";
import { type Box, textWidth, uprightBox } from "./boxes.ts";
import { MARK_PITCH } from "./marks.ts";
import { LABEL_PX, type PlacedLabel, type PlacedStep, type Timeline, type Told, timelineOf } from "./timeline.ts";

export interface Picture {
  readonly lanes: readonly { readonly node: NodeId; readonly y: number }[];
  /** The height of one band, from its top to the time axis. */
  readonly height: number;
  readonly stretches: readonly Stretch[];
  readonly steps: readonly PlacedStep[];
  readonly arrows: readonly Arrow[];
  readonly tracks: readonly PlacedTrack[];
  readonly arrowLabels: readonly ArrowLabel[];
  readonly lossLabels: readonly LossLabel[];
  readonly ticks: readonly Tick[];
  readonly breaks: readonly number[];
  readonly bands: readonly Band[];
  /** The signs around the part that repeats forever. That part lasts until the end. Null if nothing repeats. */
  readonly repeat: Repeat | null;
}

/** The signs around the part of a run that repeats. */
export interface Repeat {
  /** The outer edges of the two signs. */
  readonly from: number;
  readonly to: number;
  readonly top: number;
  readonly bottom: number;
}

export interface Band {
  readonly left: number;
  readonly right: number;
}

export interface Stretch {
  readonly node: NodeId;
  readonly y: number;
  readonly x1: number;
  readonly x2: number;
  readonly condition: Standing["condition"];
  readonly leads: boolean;
}

export interface Tick {
  readonly x: number;
  /** The label. Empty if it does not fit. */
  readonly text: string;
}

/** The font size on the axis. */
export const TICK_PX = 10.5;
const TOP_PX = 34;
const BOTTOM_PX = 24;
/** Additional space for the text above a repeat sign. */
const REPEAT_TOP_PX = 14;
/** The distance from a repeat sign's outer edge to the repeated part, and from the sign to the edge of the picture. */
const [REPEAT_SIGN_PX, REPEAT_EDGE_PX] = [28, 8];
const LEAST_PITCH_PX = 52;
const MOST_PITCH_PX = 92;
const WISHED_HEIGHT_PX = 496;

/** The width of a repeat sign, including its dots. */
const SIGN_PX = 16;

export function layOut(excerpt: Excerpt, bandWidth: number, told: Told = {}): Picture {
  const { nodes } = excerpt.header;
  const pitch = Math.min(MOST_PITCH_PX, Math.max(LEAST_PITCH_PX, WISHED_HEIGHT_PX / Math.max(1, nodes.length)));
  const loopFrom = excerpt.header.violation?.loopFrom ?? null;
  const top = TOP_PX + (loopFrom === null ? 0 : REPEAT_TOP_PX);
  const { timeline, edges } = banded(timelineOf(excerpt, told), bandWidth);
  const { lanes, bottom } = lanesOf(nodes, { top, pitch }, depthsOf(timeline.tracks));
  const places = new Map(lanes.map(({ node, y }) => [node, y]));
  const yOf = (node: NodeId): number => places.get(node) ?? 0;
  const bands = edges.slice(1).map((right, index) => ({ left: edges[index] as number, right }));
  const { steps } = timeline;
  const height = bottom + BOTTOM_PX;
  const repeat = repeatOf(timeline.loopX, edges.at(-1) ?? 0, lanes);
  const onLines = steps.flatMap((step) => boxesOf(step, yOf(step.step.node)));
  const arrows = arrowsOf(timeline, yOf, onLines);
  const signs = repeat === null ? [] : signBoxes(repeat);
  const around = { arrows, lifeLines: lanes.map(({ y }) => y), edges };
  const tracks = placeTracks(timeline, yOf, { ...around, boxes: [...onLines, ...signs] });
  const boxes = [...onLines, ...signs, ...tracks.map(trackBox)];
  const lossLabels = placeLossLabels({ ...around, boxes });
  return {
    lanes,
    height,
    stretches: lanes.flatMap((lane) => stretchesOf(excerpt, timeline, lane, edges.at(-1) ?? 0)),
    steps,
    arrows,
    tracks,
    lossLabels,
    arrowLabels: placeArrowLabels({ ...around, boxes: [...boxes, ...lossLabels.map(({ box }) => box)] }),
    ticks: bands.flatMap((band) => ticksOf(timeline, band, excerpt)),
    breaks: timeline.breaks,
    bands,
    repeat,
  };
}

/** Positions the lanes. Tracks below a life line push the lines below it further down. */
function lanesOf(
  nodes: readonly NodeId[],
  { top, pitch }: { top: number; pitch: number },
  depths: ReadonlyMap<NodeId, number>,
): { lanes: Picture["lanes"]; bottom: number } {
  let y = top;
  const lanes = nodes.map((node) => {
    const lane = { node, y };
    y += pitch + (depths.get(node) ?? 0);
    return lane;
  });
  return { lanes, bottom: nodes.length === 0 ? top : y - pitch };
}

function repeatOf(loopX: number | null, end: number, lanes: Picture["lanes"]): Repeat | null {
  const [first, last] = [lanes[0], lanes.at(-1)];
  if (loopX === null || first === undefined || last === undefined) return null;
  return { from: loopX - REPEAT_SIGN_PX, to: end - REPEAT_EDGE_PX, top: first.y - 32, bottom: last.y + 20 };
}

/** Returns the areas of the signs around a repeated part. */
export function signBoxes({ from, to, top, bottom }: Repeat): Box[] {
  return [from, to - SIGN_PX].map((left) => uprightBox(left, top, SIGN_PX, bottom - top));
}

/** Returns the areas of the texts along life lines and arrows. */
export function textBoxes({ steps, lanes, arrowLabels, lossLabels }: Picture): Box[] {
  const places = new Map(lanes.map(({ node, y }) => [node, y]));
  return [
    ...steps.flatMap(({ step, label }) => (label === null ? [] : [labelBox(label, places.get(step.node) ?? 0)])),
    ...arrowLabels.map(({ box }) => box),
    ...lossLabels.map(({ box }) => box),
  ];
}

const labelBox = ({ x, width, dy }: PlacedLabel, y: number): Box => boxOfLabel(x, y + dy, width, LABEL_PX);

/** Returns the areas covered by a step's marks and label. */
export function boxesOf({ inscription, marksX, label }: PlacedStep, y: number): Box[] {
  const { marks } = inscription;
  const last = marksX + (marks.length - 1) * MARK_PITCH;
  return [
    ...(marks.length === 0 ? [] : [uprightBox(marksX - 7, y - 14, last - marksX + 16, 21)]),
    ...(label === null ? [] : [labelBox(label, y)]),
  ];
}

function stretchesOf(
  { before }: Excerpt,
  { steps }: Timeline,
  { node, y }: Picture["lanes"][number],
  end: number,
): Stretch[] {
  const stand = (standing: Standing) => ({ condition: standing.condition, leads: leads(node, standing) });
  const own = steps.filter(({ step }) => step.node === node);
  const changes = [
    { at: Number.NEGATIVE_INFINITY, value: stand(before.get(node) as Standing) },
    ...own.map(({ x, after }) => ({ at: x, value: stand(after) })),
  ];
  const spans = spansOf(changes, end, (a, b) => a.condition === b.condition && a.leads === b.leads);
  // A node is not drawn before it starts. A node that never starts is drawn as down.
  const drawn = spans.length > 1 && spans[0]?.value.condition === "down" ? spans.slice(1) : spans;
  return drawn.map(({ from: x1, to: x2, value }) => ({ node, y, x1, x2, ...value }));
}

function ticksOf({ moments }: Timeline, { left, right }: Band, { header, entries, origin }: Excerpt): Tick[] {
  const digits = header.madeBy === "checker" ? 0 : digitsFor(entries.map(({ at }) => at - origin));
  let free = left;
  let last = Number.NEGATIVE_INFINITY;
  return moments.flatMap(({ at, x }): Tick[] => {
    if (x < left || x >= right || x - last < 2) return [];
    last = x;
    const text = timeText(at - origin, digits);
    const half = textWidth(text, TICK_PX) / 2;
    const hasRoom = x - half >= free && x + half <= right;
    if (hasRoom) free = x + half + 10;
    return [{ x, text: hasRoom ? text : "" }];
  });
}

/** Returns the number of decimal digits: the smallest number that distinguishes most times, up to microseconds. */
function digitsFor(times: readonly number[]): number {
  const distinct = new Set(times).size;
  return [0, 1, 2].find((digits) => new Set(times.map((at) => at.toFixed(digits))).size >= distinct * 0.9) ?? 3;
}

/** Formats a time. Times before the origin have a typographic minus sign. */
const timeText = (ms: number, digits: number): string => ms.toFixed(digits).replace("-", "−");
