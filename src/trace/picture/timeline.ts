/**
 * Where each step stands on the time axis. Later is never to the left of earlier, and a message always takes some way;
 * within that, distances are true to time unless a node needs more room for what it does at once, or nothing happens for
 * so long that the axis is cut. Steps wait until their label has room, so that no label has to be left out.
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
  /** From which side of the life line a message arrives; null where none does. */
  readonly arrival: "above" | "below" | null;
  /** Where the first mark stands. */
  readonly marksX: number;
  readonly label: PlacedLabel | null;
  /** How the node stands from here on. */
  readonly after: Standing;
}

export interface PlacedLabel {
  readonly x: number;
  readonly width: number;
  readonly row: LabelRow;
  /** Of its baseline, from the life line. */
  readonly dy: number;
}

/** Rows for labels along a life line: next to it above and below, and one more above. */
export type LabelRow = "above" | "below" | "high";

export interface Timeline {
  readonly steps: readonly PlacedStep[];
  readonly flights: readonly Flight[];
  readonly tracks: readonly Track[];
  /** Where each entry's step stands. */
  readonly xOfEntry: readonly number[];
  /** The moments at which something happens, and where the first thing stands that does. */
  readonly moments: readonly { readonly at: number; readonly x: number }[];
  /** Where the axis is cut, as nothing happens. */
  readonly breaks: readonly number[];
  /** Where what repeats for ever begins; null where nothing does. */
  readonly loopX: number | null;
  readonly width: number;
}

export const LABEL_PX = 11;
/** Room before the first step and behind the last. */
export const LEAD_PX = 16;
/** So long is the way of a message of median delay, if its name is not longer. */
const TRAVEL_PX = 72;
const LONGEST_TRAVEL_PX = 150;
/** One step of the checker. */
const STEP_PX = 44;
const LEAST_TRAVEL_PX = 24;
/** So much further for each message that sets out at the same moment. */
const CROWD_PX = 5;
const LONGEST_GAP_PX = 170;
const BREAK_PX = 96;
/** Between two steps of one node without marks. */
const LEAST_STEP_PX = 13;
const LABEL_GAP_PX = 9;
/** From a text to a mark or an arrowhead behind it. */
const HEAD_PX = 12;
/** Room for the signs around a repeated part. */
export const REPEAT_PX = 44;

type InscribedStep = Pick<PlacedStep, "step" | "inscription" | "after" | "arrival">;

/** What is told beside what every picture tells. */
export interface Told {
  /** With each step its vector clock. */
  readonly clocks?: boolean;
  /** By a request's short name that of its answer: between both it is held back. */
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

/** Of each row beside a life line: how far it is from a step to the next mark or arrowhead there. */
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

/** Goes through the steps in order and gives each the first place that is right of all that came before it. */
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

/** How far to the right a step reaches, with its marks and label. */
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

/** Of the entry of a sending: how far its message travels at least, so that a crowd of arrows can be told apart. */
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

/** What is still free along the life lines, from left to right. */
class Rooms {
  readonly #rooms = new Map<NodeId, Room>();
  readonly #depths: ReadonlyMap<NodeId, number>;
  readonly #ahead: readonly Ahead[] | null;

  /** `depths`: what hangs from the life lines. `ahead`: of each step, if labels do not need more. Null: no labels. */
  constructor(depths: ReadonlyMap<NodeId, number>, ahead: readonly Ahead[] | null) {
    this.#depths = depths;
    this.#ahead = ahead;
  }

  /** Takes the first place not left of `wish` where marks and label fit. */
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
      // Beside the marks there is room above the line; in the other rows the label stands over or under them.
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

/** So much waiting is better than to stand away from one's marks. */
const RELUCTANCE_PX: Readonly<Record<LabelRow, number>> = { above: 0, below: 30, high: 36 };
/** Baselines of labels, from the life line. */
const ROW_DY: Readonly<Record<LabelRow, number>> = { above: -6, below: 17, high: -19 };
const ROWS: readonly LabelRow[] = ["above", "below", "high"];
