/**
 * Places steps on the time axis. A later step is never to the left of an earlier one, and a message always covers some
 * distance. Within these constraints, distances are proportional to time, unless a node needs more space for
 * simultaneous steps or the axis is cut during a long pause. Steps are moved to the right until there is space for
 * their label, so that no label is omitted.
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
  /** The side of the life line on which a message arrives. Null if the step receives no message. */
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
  /** The vertical distance of its baseline from the life line. */
  readonly dy: number;
}

/** A row for labels along a life line: directly above or below it, or one row higher. */
export type LabelRow = "above" | "below" | "high";

/** Steps, messages and tracks on the time axis. */
export interface Timeline {
  readonly steps: readonly PlacedStep[];
  readonly flights: readonly Flight[];
  readonly tracks: readonly Track[];
  /** The position of the step that each entry belongs to. */
  readonly xOfEntry: readonly number[];
  /** The time of each step, with the position of the first step at that time. */
  readonly moments: readonly { readonly at: number; readonly x: number }[];
  /** The positions where the axis is cut because nothing happens. */
  readonly breaks: readonly number[];
  /** The position where the part that repeats forever begins. Null if nothing repeats. */
  readonly loopX: number | null;
  readonly width: number;
}

export const LABEL_PX = 11;
/** The margin before the first step and after the last one. */
export const LEAD_PX = 16;
/** The length of the arrow for a message with the median delay, unless its name needs more space. */
const TRAVEL_PX = 72;
const LONGEST_TRAVEL_PX = 150;
/** The width of one step in the checker's runs. */
const STEP_PX = 44;
const LEAST_TRAVEL_PX = 24;
/** The additional distance for each message sent at the same time. */
const CROWD_PX = 5;
const LONGEST_GAP_PX = 170;
const BREAK_PX = 96;
/** The minimum distance between two steps of the same node if they have no marks. */
const LEAST_STEP_PX = 13;
const LABEL_GAP_PX = 9;
/** The distance between a text and the next mark or arrowhead. */
const HEAD_PX = 12;
/** The space for each sign around a repeated part. */
export const REPEAT_PX = 44;

type InscribedStep = Pick<PlacedStep, "step" | "inscription" | "after" | "arrival">;

/** Optional content of a picture. */
export interface Told {
  /** Whether to show the vector clock of each step. Default: false. */
  readonly clocks?: boolean;
  /**
   * Maps the short name of a request to the short name of its reply. A request is shown as held back until its reply.
   */
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

/** For each row next to a life line, the distance from a step to the next mark or arrowhead in that row. */
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

/** Visits the steps in order and gives each one the first position to the right of all earlier ones. */
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

/** Returns the right edge of a step, including its marks and label. */
export function endOf({ x, marksX, inscription, label }: PlacedStep): number {
  const marks = inscription.marks.length === 0 ? x : marksX + (inscription.marks.length - 1) * MARK_PITCH + 10;
  return Math.max(marks, label === null ? 0 : label.x + label.width);
}

/** Returns the number of pixels per millisecond, or per step for a run from the checker. */
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

/** Returns the minimum length of each message's arrow, chosen so that crowded arrows can be distinguished. */
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

/** The free space along the life lines, which is filled from left to right. */
class Rooms {
  readonly #rooms = new Map<NodeId, Room>();
  readonly #depths: ReadonlyMap<NodeId, number>;
  readonly #ahead: readonly Ahead[] | null;

  /**
   * `depths`: the depth of the tracks below each life line. `ahead`: the distances to keep for each step, unless labels
   * need more. If null, no labels are placed.
   */
  constructor(depths: ReadonlyMap<NodeId, number>, ahead: readonly Ahead[] | null) {
    this.#depths = depths;
    this.#ahead = ahead;
  }

  /** Takes the first position at or to the right of `wish` that has space for the marks and the label. */
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
      // In the row above the line, the label goes next to the marks. In the other rows, it is above or below them.
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

/** How many pixels a step is moved to the right before its label is put in this row instead, away from its marks. */
const RELUCTANCE_PX: Readonly<Record<LabelRow, number>> = { above: 0, below: 30, high: 36 };
/** The baseline of the labels in each row, relative to the life line. */
const ROW_DY: Readonly<Record<LabelRow, number>> = { above: -6, below: 17, high: -19 };
const ROWS: readonly LabelRow[] = ["above", "below", "high"];
