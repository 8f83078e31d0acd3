/**
 * Places labels along arrows so that they do not cover any text, mark, arrowhead or life line, and cross at most one
 * other arrow. A message that one step sends to several nodes is labeled once. A label that does not fit is omitted,
 * because the arrow's ink also identifies the type.
 */

import type { NodeId } from "../../core/protocol.ts";
import { TRACK_PITCH, type Track } from "../diagram/diagram.ts";
import { labelOf, lossWords } from "../log.ts";
import { type Arrow, segmentsOf, tipBox } from "./arrows.ts";
import { type Box, boxesMeet, boxMeetsSegment, type Segment, textWidth, uprightBox } from "./boxes.ts";
import type { Timeline } from "./timeline.ts";

export interface ArrowLabel {
  readonly text: string;
  readonly box: Box;
  readonly arrow: Arrow;
}

/** The parts of a picture that labels must avoid. */
export interface Surroundings {
  readonly arrows: readonly Arrow[];
  /** Text and marks that have already been placed. */
  readonly boxes: readonly Box[];
  readonly lifeLines: readonly number[];
  /** The edges of the bands, from left to right. Each label must be within one band. */
  readonly edges: readonly number[];
}

export const ARROW_LABEL_PX = 10.5;
const HEIGHT_PX = 12;
const ASIDE_PX = 7.5;
/** The maximum slope of an arrow with a label along it. Steeper arrows have upright labels next to them. */
const STEEPEST_DEGREES = 52;
const PLACES = [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82];
const CROSSING_COST = 3;
const WORST_COST = 3.6;
/** The thickness of a life line, including its margin. */
const LIFE_LINE_PX = 6;
/** The margin around a label that gives the reason for a loss. */
const LOSS_CLEARANCE_PX = 2;

/** Places all labels that there is space for. */
export function placeArrowLabels(surroundings: Surroundings): ArrowLabel[] {
  const obstacles = new Obstacles(surroundings);
  return groups(surroundings.arrows).flatMap(({ text, arrows }) => {
    const candidates = arrows.flatMap((arrow) => candidatesFor(arrow, text));
    let best: ArrowLabel | null = null;
    let bestCost = WORST_COST;
    for (const { box, arrow, cost } of candidates) {
      if (cost >= bestCost) continue;
      const total = cost + obstacles.cost(box, arrow);
      if (total < bestCost) [best, bestCost] = [{ text, box, arrow }, total];
    }
    if (best !== null) obstacles.add(best.box);
    return best === null ? [] : [best];
  });
}

/**
 * The reason for a loss, next to the cross at the end of the arrow. It is shown only if there is space, because the
 * cross already indicates the loss.
 */
export interface LossLabel {
  readonly text: string;
  readonly box: Box;
}

/** Places the labels with the reasons for losses. */
export function placeLossLabels(surroundings: Surroundings): LossLabel[] {
  const obstacles = new Obstacles(surroundings);
  return surroundings.arrows.flatMap((arrow) => {
    const { lost } = arrow.flight;
    const end = arrow.points.at(-1);
    if (lost === null || end === undefined) return [];
    const text = lossWords(lost);
    const [width, height] = [textWidth(text, ARROW_LABEL_PX), HEIGHT_PX];
    const [dx, dy] = [width / 2 + 9, height / 2 + 8];
    const places = [
      [dx, 0],
      [-dx, 0],
      [0, dy],
      [0, -dy],
    ].map(([x = 0, y = 0]) => ({ x: end.x + x, y: end.y + y, width, height, degrees: 0 }));
    const box = places.find((place) => {
      const clear = { ...place, width: width + 2 * LOSS_CLEARANCE_PX, height: height + 2 * LOSS_CLEARANCE_PX };
      return obstacles.cost(clear, null) === 0;
    });
    if (box === undefined) return [];
    obstacles.add(box);
    return [{ text, box }];
  });
}

/**
 * Returns, for each list, the first position at which the box would overlap nothing but arrows, choosing among the
 * positions that overlap the fewest. Null if there is no such position.
 */
function freePlaces(surroundings: Surroundings, choices: readonly (readonly Box[])[]): (Box | null)[] {
  const obstacles = new Obstacles(surroundings);
  return choices.map((places) => {
    let best: Box | null = null;
    let bestCost = Number.POSITIVE_INFINITY;
    for (const box of places) {
      const cost = bestCost === 0 ? bestCost : obstacles.cost(box, null);
      if (cost < bestCost) [best, bestCost] = [box, cost];
    }
    if (best !== null) obstacles.add(best);
    return best;
  });
}

function groups(arrows: readonly Arrow[]): { text: string; arrows: Arrow[] }[] {
  const found = new Map<string, { text: string; arrows: Arrow[] }>();
  for (const arrow of arrows) {
    const text = labelOf(arrow.flight.message);
    const key = `${arrow.flight.from} ${arrow.stepX ?? arrow.points[0]?.x} ${text}`;
    const known = found.get(key);
    if (known === undefined) found.set(key, { text, arrows: [arrow] });
    else known.arrows.push(arrow);
  }
  return [...found.values()];
}

function candidatesFor(arrow: Arrow, text: string): { box: Box; arrow: Arrow; cost: number }[] {
  const width = textWidth(text, ARROW_LABEL_PX);
  const segments = segmentsOf(arrow);
  const { a, b } = (segments.length === 3 ? segments[1] : segments[0]) as Segment;
  const angle = (Math.atan2(b.y - a.y, b.x - a.x) * 180) / Math.PI;
  const isSteep = Math.abs(angle) > STEEPEST_DEGREES;
  return PLACES.flatMap((place, rank) => {
    const [x, y] = [a.x + (b.x - a.x) * place, a.y + (b.y - a.y) * place];
    return [-1, 1].map((side) => {
      const cost = rank * 0.12 + (side === 1 ? 0.1 : 0);
      if (isSteep) {
        const aside = (width / 2 + 4 + Math.abs(HEIGHT_PX / 2 / Math.tan((angle * Math.PI) / 180))) * -side;
        return { arrow, cost: cost + 0.3, box: { x: x + aside, y, width, height: HEIGHT_PX, degrees: 0 } };
      }
      const turn = (angle * Math.PI) / 180;
      const [dx, dy] = [-Math.sin(turn) * ASIDE_PX * side, Math.cos(turn) * ASIDE_PX * side];
      return { arrow, cost, box: { x: x + dx, y: y + dy, width, height: HEIGHT_PX, degrees: angle } };
    });
  });
}

/** The obstacles, divided into columns, so that a label has to be compared only with nearby ones. */
class Obstacles {
  readonly #surroundings: Surroundings;
  readonly #boxes = new Columns<Box>();
  readonly #segments = new Columns<Segment & { readonly arrow: Arrow }>();

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
    for (const box of surroundings.boxes) this.add(box);
    for (const arrow of surroundings.arrows) if (arrow.fate !== "flying") this.add(tipBox(arrow));
    for (const arrow of surroundings.arrows)
      for (const { a, b } of segmentsOf(arrow))
        this.#segments.add(Math.min(a.x, b.x), Math.max(a.x, b.x), { a, b, arrow });
  }

  add(box: Box): void {
    const reach = Math.hypot(box.width, box.height) / 2;
    this.#boxes.add(box.x - reach, box.x + reach, box);
  }

  /**
   * Returns the cost of a label at the position of the box. Infinity if a label must not be placed there. `own`: the
   * arrow that the label may touch.
   */
  cost(box: Box, own: Arrow | null): number {
    const { lifeLines, edges } = this.#surroundings;
    const reach = Math.hypot(box.width, box.height) / 2;
    const [left, right] = [box.x - reach, box.x + reach];
    const isOutside = !edges.some((edge, index) => edge <= left && right <= (edges[index + 1] ?? edge));
    if (isOutside || this.#boxes.near(left, right).some((other) => boxesMeet(other, box)))
      return Number.POSITIVE_INFINITY;
    const across = { left: left - 1, right: right + 1 };
    const meetsLifeLine = lifeLines.some((y) =>
      boxesMeet(box, uprightBox(across.left, y - LIFE_LINE_PX / 2, across.right - across.left, LIFE_LINE_PX)),
    );
    if (meetsLifeLine) return Number.POSITIVE_INFINITY;
    const crossed = this.#segments
      .near(left, right)
      .filter(({ arrow, ...line }) => arrow !== own && boxMeetsSegment(box, line));
    return crossed.length * CROSSING_COST;
  }
}

const COLUMN_PX = 120;

class Columns<T> {
  readonly #columns = new Map<number, T[]>();

  add(left: number, right: number, thing: T): void {
    for (let at = Math.floor(left / COLUMN_PX); at <= Math.floor(right / COLUMN_PX); at++) {
      const column = this.#columns.get(at);
      if (column === undefined) this.#columns.set(at, [thing]);
      else column.push(thing);
    }
  }

  near(left: number, right: number): T[] {
    const found = new Set<T>();
    for (let at = Math.floor(left / COLUMN_PX); at <= Math.floor(right / COLUMN_PX); at++)
      for (const thing of this.#columns.get(at) ?? []) found.add(thing);
    return [...found];
  }
}

export const boxOfLabel = (left: number, baseline: number, width: number, fontPx: number): Box =>
  uprightBox(left, baseline - fontPx * 0.82, width, fontPx * 1.1);

export interface PlacedTrack {
  readonly track: Track;
  readonly x1: number;
  readonly x2: number;
  /** The y coordinate of its life line. */
  readonly lifeY: number;
  readonly top: number;
  /** The boxes for its text, one in each band that has space for it. */
  readonly texts: readonly Box[];
}

export const TRACK_PX = 9;
/** The font size of the text in a track. */
export const TRACK_TEXT_PX = 8.5;
const BELOW_LINE_PX = 7;
const INSET_PX = 3;
/** The distance between two candidate positions for a text. */
const STRIDE_PX = 8;
const MOST_PLACES = 20;

type Bare = Omit<PlacedTrack, "texts">;

/** Places tracks below life lines, and their texts where there is space. */
export function placeTracks(
  { tracks, steps }: Pick<Timeline, "tracks" | "steps">,
  yOf: (node: NodeId) => number,
  surroundings: Surroundings,
): PlacedTrack[] {
  const { edges, boxes } = surroundings;
  const [left, right] = [edges[0] ?? 0, edges.at(-1) ?? 0];
  const bare = tracks.map((track): Bare => {
    const lifeY = yOf(track.node);
    const x1 = track.from === null ? left : (steps[track.from]?.x ?? left);
    const x2 = track.to === null ? right : (steps[track.to]?.x ?? right);
    return { track, x1, x2, lifeY, top: lifeY + BELOW_LINE_PX + track.row * TRACK_PITCH };
  });
  const around = { ...surroundings, boxes: [...boxes, ...bare.flatMap(stemBoxes)] };
  const choices = bare.map((each) => textPlaces(each, edges));
  const found = freePlaces(around, choices.flat());
  const bands = edges.length - 1;
  return bare.map((each, index) => {
    const texts = found.slice(index * bands, (index + 1) * bands).filter((box) => box !== null);
    return { ...each, texts };
  });
}

/** Returns the lines that connect the track to its life line. They may cross the tracks above it. */
function stemBoxes({ track, x1, x2, lifeY, top }: Bare): Box[] {
  const ends = [...(track.from === null ? [] : [x1]), ...(track.to === null ? [] : [x2])];
  return ends.map((x) => uprightBox(x - 1, lifeY, 2, top - lifeY));
}

/** Returns candidate positions in each band, starting from its left edge. */
function textPlaces({ track, x1, x2, top }: Bare, edges: readonly number[]): Box[][] {
  const width = textWidth(track.text, TRACK_TEXT_PX);
  return edges.slice(1).map((edge, band) => {
    const from = Math.max(x1, edges[band] ?? x1);
    const room = Math.min(x2, edge) - from - width - 2 * INSET_PX;
    const count = Math.min(MOST_PLACES, Math.floor(room / STRIDE_PX) + 1);
    return Array.from({ length: Math.max(0, count) }, (_, place) =>
      uprightBox(from + INSET_PX + place * STRIDE_PX, top + 1, width, TRACK_PX - 2),
    );
  });
}

/** Returns the area that a track covers. */
export const trackBox = ({ x1, x2, top }: PlacedTrack): Box => uprightBox(x1, top, x2 - x1, TRACK_PX);
