/**
 * The position of each step on the time axis. A later step is never left of an earlier one, and a message always covers some
 * distance. Within these limits distances are proportional to time, unless a node needs more room for simultaneous steps, or
 * the axis is cut during a long pause. Steps move right until their label has room, so that no label is omitted.
 */
import type { NodeId } from "../../core/protocol.ts";
import { clockText, type Diagram, depthsOf, diagramOf, type Track, withheldIn } from "../diagram/diagram.ts";
import type { Excerpt } from "../excerpt.ts";
import { labelOf } from "../log.ts";
import type { Standing } from "../standing.ts";
import type { Flight, Step } from "../steps.ts";
import { textWidth } from "./boxes.ts";
import { type Inscription, inscriptionOf, MARK_PITCH, partsOf, SEPARATOR } from "./marks.ts";

export interface PlacedStep {
  readonly step: Step;
  readonly x: number;
  readonly inscription: Inscription & { readonly clock: string };
  /** The side of the life line on which a message arrives. Null if none does. */
  readonly arrival: "above" | "below" | null;
  /** The position of the first mark. */
  readonly marksX: number;
  readonly label: PlacedLabel | null;
  /** The node's standing after the step. */
  readonly after: Standing;
}

export interface PlacedLabel {
  readonly x: number;
  readonly width: number;
  readonly row: LabelRow;
  /** The distance of its baseline from the life line. */
  readonly dy: number;
}

/** Rows for labels along a life line: directly above and below it, and one more above. */
export type LabelRow = "above" | "below" | "high";

export interface Timeline {
  readonly steps: readonly PlacedStep[];
  readonly flights: readonly Flight[];
  readonly tracks: readonly Track[];
  /** The position of each entry's step. */
  readonly xOfEntry: readonly number[];
  /** The times of all steps, each with the position of its first step. */
  readonly moments: readonly { readonly at: number; readonly x: number }[];
  /** The positions at which the axis is cut because nothing happens. */
  readonly breaks: readonly number[];
  /** The start of the part that repeats forever. Null if nothing repeats. */
  readonly loopX: number | null;
  readonly width: number;
}

export const LABEL_PX = 11;
/** The margin before the first step and after the last. */
export const LEAD_PX = 16;
/** The length of the way of a message with median delay, unless its name is longer. */
const TRAVEL_PX = 72;
const LONGEST_TRAVEL_PX = 150;
/** The width of one step of the checker. */
const STEP_PX = 44;
const LEAST_TRAVEL_PX = 24;
/** Additional distance for each message sent at the same time. */
const CROWD_PX = 5;
const LONGEST_GAP_PX = 170;
const BREAK_PX = 96;
/** Between two steps of one node without marks. */
const LEAST_STEP_PX = 13;
const LABEL_GAP_PX = 9;
/** From a text to a mark or an arrowhead after it. */
const HEAD_PX = 12;
/** The space for the signs around a repeated part. */
export const REPEAT_PX = 44;

type InscribedStep = Pick<PlacedStep, "step" | "inscription" | "after" | "arrival">;

/** Optional content of a picture. */
export interface Told {
  /** Show the vector clock of each step. */
  readonly clocks?: boolean;
  /** The short name of the answer, by the short name of the request. The request is held back until the answer. */
  readonly withheld?: Readonly<Record<string, string>>;
}

export function timelineOf(excerpt: Excerpt, { clocks = false, withheld = {} }: Told = {}): Timeline {
  const diagram = diagramOf(excerpt);
  const { arrows: flights, heldBack } = diagram;
  const tracks = [...heldBack, ...withheldIn(excerpt.steps, excerpt.entries, withheld)];
  const steps = inscribed(diagram, clocks);
  const walk = walkOf(excerpt, flights);
  const depths = depthsOf(tracks);
  const bare = walk(steps, new Rooms(depths, null));
  return { ...walk(steps, new Rooms(depths, roomBefore(bare.steps))), flights, tracks };
}

function inscribed({ lanes, points }: Diagram, clocks: boolean): InscribedStep[] {
  return points.map(({ step, entries, before, after, clock }) => {
    const receipt = entries.find((entry) => entry.kind === "receive");
    const isFromBelow = receipt !== undefined && lanes.indexOf(receipt.from) > lanes.indexOf(step.node);
    return {
      step,
      after,
      arrival: receipt === undefined ? null : isFromBelow ? "below" : "above",
      inscription: {
        ...inscriptionOf(entries, entries[0]?.kind === "start" ? null : before.view),
        clock: clocks ? clockText(clock, lanes) : "",
      },
    };
  });
}

/** For each row next to a life line: the distance from a step to the next mark or arrowhead there. */
type Ahead = Readonly<Record<LabelRow, number>>;

function roomBefore(steps: readonly PlacedStep[]): Ahead[] {
  const next = new Map<NodeId, Ahead>();
  const room = steps.toReversed().map(({ step, x, inscription, arrival }): Ahead => {
    const { above, below } = next.get(step.node) ?? {
      above: Number.POSITIVE_INFINITY,
      below: Number.POSITIVE_INFINITY,
    };
    next.set(step.node, {
      above: inscription.marks.length > 0 || arrival === "above" ? x : above,
      below: arrival === "below" ? x : below,
      high: Number.POSITIVE_INFINITY,
    });
    return { above: above - x, below: below - x, high: Number.POSITIVE_INFINITY };
  });
  return room.reverse();
}

/** Goes through the steps in order and gives each the first place that is right of all earlier ones. */
function walkOf(excerpt: Excerpt, flights: readonly Flight[]) {
  const sentBy = new Map(flights.flatMap(({ sent, ended }) => (ended === null ? [] : [[ended, sent] as const])));
  const scale = scaleOf(excerpt, flights);
  const travel = leastTravels(excerpt, flights);
  const loopFrom = excerpt.header.violation?.loopFrom ?? null;
  return (steps: readonly InscribedStep[], rooms: Rooms): Omit<Timeline, "flights" | "tracks"> => {
    const xOfEntry: number[] = [];
    const moments: { at: number; x: number; firstX: number }[] = [];
    const breaks: number[] = [];
    let [rightmost, textEnd] = [0, 0];
    function momentX(at: number, least: number): number {
      const moment = moments.at(-1);
      if (moment !== undefined && at <= moment.at) return moment.x;
      const gap = moment === undefined ? 0 : (at - moment.at) * scale;
      if (gap > LONGEST_GAP_PX) breaks.push(rightmost + BREAK_PX / 2);
      const x = Math.max(least, rightmost + (gap > LONGEST_GAP_PX ? BREAK_PX : gap));
      moments.push({ at, x, firstX: Number.POSITIVE_INFINITY });
      return x;
    }
    const placed = steps.map((inscribedStep, index): PlacedStep => {
      const { node, at, indices } = inscribedStep.step;
      const sent = indices
        .flatMap((entry) => sentBy.get(entry) ?? [])
        .map((entry) => (xOfEntry[entry] ?? 0) + travel(entry));
      const beginsLoop = loopFrom !== null && indices.includes(loopFrom);
      const least = beginsLoop ? Math.max(rightmost, textEnd) + REPEAT_PX : 0;
      const wish = Math.max(least, momentX(at, least), ...sent);
      const place = rooms.take(index, node, wish, inscribedStep);
      for (const entry of indices) xOfEntry[entry] = place.x;
      rightmost = Math.max(rightmost, place.x);
      textEnd = Math.max(textEnd, endOf({ ...inscribedStep, ...place }));
      const moment = moments.at(-1);
      if (moment !== undefined) moment.firstX = Math.min(moment.firstX, place.x);
      return { ...inscribedStep, ...place };
    });
    return {
      steps: placed,
      xOfEntry,
      moments: moments.map(({ at, firstX }) => ({ at, x: firstX })),
      breaks,
      loopX: loopFrom === null ? null : (xOfEntry[loopFrom] ?? null),
      width: Math.max(rightmost, textEnd),
    };
  };
}

/** How far to the right a step extends, with its marks and label. */
export function endOf({ x, marksX, inscription, label }: PlacedStep): number {
  const marks = inscription.marks.length === 0 ? x : marksX + (inscription.marks.length - 1) * MARK_PITCH + 10;
  return Math.max(marks, label === null ? 0 : label.x + label.width);
}

/** Pixels per millisecond, or per step of the checker. */
function scaleOf({ header, entries }: Excerpt, flights: readonly Flight[]): number {
  if (header.madeBy === "checker") return STEP_PX;
  const at = (index: number): number => entries[index]?.at ?? 0;
  const delays = flights.flatMap(({ sent, ended, lost }) =>
    sent === null || ended === null || lost !== null ? [] : [at(ended) - at(sent)],
  );
  const pauses = entries.map((entry, index) => entry.at - at(Math.max(0, index - 1)));
  const typical = median(delays.filter((delay) => delay > 0)) ?? median(pauses.filter((pause) => pause > 0)) ?? 1;
  const names = flights.map(({ message }) => textWidth(labelOf(message), LABEL_PX) + 24);
  return Math.min(LONGEST_TRAVEL_PX, Math.max(TRAVEL_PX, median(names) ?? 0)) / typical;
}

/** The minimum distance of the message of a sending, so that crowded arrows can be distinguished. */
function leastTravels({ entries }: Excerpt, flights: readonly Flight[]): (sent: number) => number {
  const at = (index: number): number => entries[index]?.at ?? 0;
  const crowds = new Map<number, number>();
  for (const { sent } of flights) if (sent !== null) crowds.set(at(sent), (crowds.get(at(sent)) ?? 0) + 1);
  return (sent) => Math.min(LONGEST_TRAVEL_PX, LEAST_TRAVEL_PX + CROWD_PX * (crowds.get(at(sent)) ?? 0));
}

function median(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[values.length >> 1];
}

interface Room {
  free: number;
  readonly rows: Record<LabelRow, number>;
}

/** The free space along the life lines, from left to right. */
class Rooms {
  readonly #rooms = new Map<NodeId, Room>();
  readonly #depths: ReadonlyMap<NodeId, number>;
  readonly #ahead: readonly Ahead[] | null;

  /** `depths`: the depth of the tracks under the life lines. `ahead`: for each step, unless labels need more. Null: no labels. */
  constructor(depths: ReadonlyMap<NodeId, number>, ahead: readonly Ahead[] | null) {
    this.#depths = depths;
    this.#ahead = ahead;
  }

  /** Takes the first place at or right of `wish` with room for marks and label. */
  take(
    index: number,
    node: NodeId,
    wish: number,
    { inscription, arrival }: InscribedStep,
  ): Pick<PlacedStep, "x" | "marksX" | "label"> {
    const { marks } = inscription;
    const room = this.#roomOf(node);
    const marksDx = arrival !== null && marks.length > 0 ? MARK_PITCH - 2 : 0;
    const lastMarkDx = marksDx + Math.max(0, marks.length - 1) * MARK_PITCH;
    const text = partsOf(inscription)
      .map((part) => part.text)
      .join(SEPARATOR);
    const ahead = this.#ahead?.[index];
    const meetsAbove = marks.length > 0 || arrival === "above";
    let x = Math.max(
      wish,
      room.free,
      meetsAbove ? room.rows.above + HEAD_PX : Number.NEGATIVE_INFINITY,
      arrival === "below" ? room.rows.below + HEAD_PX : Number.NEGATIVE_INFINITY,
    );
    let label: PlacedLabel | null = null;
    if (text !== "" && ahead !== undefined) {
      const width = textWidth(text, LABEL_PX);
      // The row above the line has room next to the marks; in the other rows the label is over or under them.
      const dx: Record<LabelRow, number> = { above: marks.length > 0 ? lastMarkDx + 11 : 4, below: 6, high: 3 };
      const wait = (row: LabelRow): number => {
        const untilFree = Math.max(0, room.rows[row] + LABEL_GAP_PX - (x + dx[row]));
        const pushesNext = Math.max(0, dx[row] + width + HEAD_PX - ahead[row]);
        return untilFree + pushesNext + (marks.length > 0 ? RELUCTANCE_PX[row] : 0);
      };
      const row = ROWS.reduce((best, each) => (wait(each) < wait(best) ? each : best));
      x += Math.max(0, room.rows[row] + LABEL_GAP_PX - (x + dx[row]));
      const dy = ROW_DY[row] + (row === "below" ? (this.#depths.get(node) ?? 0) : 0);
      label = { x: x + dx[row], width, row, dy };
      room.rows[row] = label.x + width;
    }
    room.free = x + lastMarkDx + (marks.length > 0 ? MARK_PITCH + 3 : LEAST_STEP_PX);
    return { x, marksX: x + marksDx, label };
  }

  #roomOf(node: NodeId): Room {
    const nowhere = Number.NEGATIVE_INFINITY;
    const known = this.#rooms.get(node) ?? { free: nowhere, rows: { above: nowhere, below: nowhere, high: nowhere } };
    this.#rooms.set(node, known);
    return known;
  }
}

/** How many pixels a step rather moves right than to put its label in this row, away from its marks. */
const RELUCTANCE_PX: Readonly<Record<LabelRow, number>> = { above: 0, below: 30, high: 36 };
/** Baselines of labels, relative to the life line. */
const ROW_DY: Readonly<Record<LabelRow, number>> = { above: -6, below: 17, high: -19 };
const ROWS: readonly LabelRow[] = ["above", "below", "high"];
