/** The elements of a picture in SVG. Their classes are defined by the style in svg.ts. */
import type { Track } from "../diagram/diagram.ts";
import type { Ink, Inkwell } from "../diagram/ink.ts";
import { labelOf, nameOf } from "../log.ts";
import { type ArrowLabel, type LossLabel, type PlacedTrack, TRACK_PX } from "./arrow-labels.ts";
import { type Arrow, clipped, type Fate } from "./arrows.ts";
import { type Box, type Point, textWidth } from "./boxes.ts";
import type { Band, Picture, Repeat, Stretch } from "./layout.ts";
import { MARK_PITCH, type MarkKind, markPaths, partsOf, SEPARATOR } from "./marks.ts";
import type { PlacedLabel, PlacedStep } from "./timeline.ts";

/** Colors that are dark enough for white paper and differ as much in grayscale as eight colors can. */
const COLOURS = ["#1f5fa8", "#a8431a", "#17683f", "#7a3a9c", "#7d5a00", "#a02060", "#1d6d78", "#4b5563"];

const colourOf = ({ slot }: Ink): string => COLOURS[slot % COLOURS.length] as string;

/** Draws the shaft of a message arrow, or the section of it that lies in the band. */
export function shaftShape(arrow: Arrow, { left, right }: Band, ink: Ink): string {
  const shown = clipped(arrow.points, left, right);
  if (shown === null) return "";
  const corners = shown.map(({ x, y }) => `${round(x)} ${round(y)}`).join("L");
  const dash = ink.dash === "" ? "" : ` stroke-dasharray="${ink.dash}"`;
  return framedArrow(arrow, ink, `<path class="casing" d="M${corners}"/><path class="shaft" d="M${corners}"${dash}/>`);
}

/** Draws the end of an arrow: received, lost, or unknown. */
export function tipShape(arrow: Arrow, { left, right }: Band, ink: Ink): string {
  const { points, fate } = arrow;
  const [begin, end] = [points[0], points.at(-1)] as [Point, Point];
  const isIn = ({ x }: Point): boolean => x >= left && x <= right;
  const turn = Math.round((Math.atan2(end.y - before(points).y, end.x - before(points).x) * 1_800) / Math.PI) / 10;
  const at = `translate(${round(end.x)} ${round(end.y)})`;
  const shapes = [
    isIn(end) && (fate === "received" || fate === "arriving") ? head(ink, `${at} rotate(${turn})`) : "",
    isIn(end) && fate === "lost" ? `<path class="lost" transform="${at}" d="M-5 -5L5 5M5 -5L-5 5"/>` : "",
    isIn(end) && fate === "flying" ? dots(`${at} rotate(${turn})`) : "",
    isIn(begin) && fate === "arriving"
      ? dots(`translate(${round(begin.x)} ${round(begin.y)}) rotate(${turn + 180})`)
      : "",
  ].join("");
  return shapes === "" ? "" : framedArrow(arrow, ink, shapes);
}

function framedArrow({ flight, fate }: Arrow, ink: Ink, shapes: string): string {
  const { message, from, to } = flight;
  const title = escaped(`${labelOf(message, 200)} from ${from} to ${to}${endings[fate]}`);
  const colour = colourOf(ink);
  return `<g class="arrow" stroke="${colour}" fill="${colour}"><title>${title}</title>${shapes}</g>`;
}

const endings: Readonly<Record<Arrow["fate"], string>> = {
  received: "",
  lost: ", lost",
  flying: ", still on its way",
  arriving: ", sent before",
};

const before = (points: readonly Point[]): Point => points.at(-2) as Point;

function head({ head: { path, open } }: Ink, transform: string): string {
  return `<path class="head${open ? " open" : ""}" transform="${transform}" d="${path}"/>`;
}

const dots = (transform: string): string =>
  `<g transform="${transform}" stroke="none"><circle cx="5" cy="0" r="1.3"/><circle cx="10" cy="0" r="1.3"/><circle cx="15" cy="0" r="1.3"/></g>`;

/**
 * Draws a held message, or the section of it that lies in the band. Both of its ends are connected to the life line.
 */
export function trackShape({ track, x1, x2, lifeY, top }: Omit<PlacedTrack, "texts">, { left, right }: Band): string {
  const [from, to] = [Math.max(x1, left), Math.min(x2, right)];
  if (to <= from) return "";
  const ends = [...(track.from !== null && from === x1 ? [x1] : []), ...(track.to !== null && to === x2 ? [x2] : [])];
  const stems = ends.map((x) => `M${round(x)} ${round(lifeY)}V${round(top + TRACK_PX / 2)}`).join("");
  const bar = `<rect class="track${track.isSurplus ? " surplus" : ""}" x="${round(from)}" y="${round(top)}" width="${round(to - from)}" height="${TRACK_PX}" rx="2"/>`;
  const title = `<title>${escaped(track.isSurplus ? `up to ${track.text.slice(1)} more are held back` : `${track.text} is held back`)}</title>`;
  return `<g>${title}${stems === "" ? "" : `<path class="stem" d="${stems}"/>`}${bar}</g>`;
}

/** Draws the background of a text, which covers any arrow that passes behind the text. */
export function plateShape({ x, y, width, height, degrees }: Box): string {
  const turn = degrees === 0 ? "" : ` transform="rotate(${round(degrees)} ${round(x)} ${round(y)})"`;
  return `<rect class="plate" x="${round(x - width / 2)}" y="${round(y - height / 2)}" width="${round(width)}" height="${round(height)}"${turn}/>`;
}

export function arrowLabelShape({ text: words, box, arrow }: ArrowLabel, inkOf: (arrow: Arrow) => Ink): string {
  const turn = box.degrees === 0 ? "" : ` rotate(${round(box.degrees)})`;
  const place = `translate(${round(box.x)} ${round(box.y)})${turn}`;
  return `<text class="name" transform="${place}" y="3.6" fill="${colourOf(inkOf(arrow))}">${escaped(words)}</text>`;
}

/** Draws the text of a track. It has a background, because arrows may pass behind it. */
export const trackTextShape = ({ text: words }: Track, { x, y, width, height }: Box): string =>
  `<rect class="slip" x="${round(x - width / 2)}" y="${round(y - height / 2)}" width="${round(width)}" height="${round(height)}"/>${text(x - width / 2, y + 3.1, words, "id")}`;

/** Draws the label that gives the reason for a loss. */
export const lossLabelShape = ({ text: words, box }: LossLabel): string =>
  `<text class="name why" x="${round(box.x)}" y="${round(box.y + 3.6)}">${escaped(words)}</text>`;

/** Draws a section of a life line on which the node is paused, stopped or leading. */
export function stretchShape({ y, x1, x2, condition, leads }: Stretch, { left, right }: Band, hatch: string): string {
  const [from, to] = [round(Math.max(x1, left)), round(Math.min(x2, right))];
  if (to <= from) return "";
  if (condition === "paused")
    return `<rect class="paused" x="${from}" y="${y - 5}" width="${round(to - from)}" height="10" fill="url(#${hatch})"/>`;
  if (condition === "down") return `<path class="down" d="M${from} ${y}H${to}"/>`;
  const line = leads ? `M${from} ${y - 2}H${to}M${from} ${y + 2}H${to}` : `M${from} ${y}H${to}`;
  // Give the line white edges, so that arrows to other nodes appear to pass underneath.
  return `<path class="under" d="M${from} ${y}H${to}"/><path class="${leads ? "leads" : "life"}" d="${line}"/>`;
}

export function stepShape({ x, marksX, inscription, label }: PlacedStep, y: number): string {
  const { marks, hasMessages } = inscription;
  const isEmpty = marks.length === 0 && label === null && !hasMessages;
  if (isEmpty) return "";
  const at = (kind: MarkKind, index: number): string => markShape(kind, marksX + index * MARK_PITCH, y);
  const dot = hasMessages ? `<circle class="dot" cx="${round(x)}" cy="${y}" r="2.4"/>` : "";
  return `${dot}${marks.map(at).join("")}${label === null ? "" : labelShape(label, y)}`;

  function labelShape({ x: left, row, dy }: PlacedLabel, lane: number): string {
    const leader =
      row === "high" && marks.length > 0 ? `<path class="leader" d="M${round(x)} ${lane - 14}V${lane - 18}"/>` : "";
    const said = partsOf(inscription)
      .map(({ style, text: words }) =>
        style === "word" ? escaped(words) : `<tspan class="${style}">${escaped(words)}</tspan>`,
      )
      .join(SEPARATOR);
    return `${leader}<text class="label" x="${round(left)}" y="${round(lane + dy)}">${said}</text>`;
  }
}

const markShape = (kind: MarkKind, x: number, y: number): string =>
  `<path class="mark ${kind}" transform="translate(${round(x)} ${y})" d="${markPaths[kind]}"/>`;

/** Draws the sample next to a legend entry. It is `SAMPLE_PX` wide and centered on y = 0. */
export function sampleShape(sample: Sample, hatch: string): string {
  const end = SAMPLE_PX - 2;
  switch (sample.sort) {
    case "message": {
      const colour = colourOf(sample.ink);
      const dash = sample.ink.dash === "" ? "" : ` stroke-dasharray="${sample.ink.dash}"`;
      return `<g class="arrow" stroke="${colour}" fill="${colour}"><path class="shaft" d="M0 0H${end}"${dash}/>${head(sample.ink, `translate(${end} 0)`)}</g>`;
    }
    case "fate": {
      const isArriving = sample.fate === "arriving";
      const cross = `<path class="lost" transform="translate(${end - 8} 0)" d="M-5 -5L5 5M5 -5L-5 5"/>`;
      const trail = isArriving ? dots("translate(18 0) rotate(180)") : dots("translate(14 0)");
      const shaft = sample.fate === "lost" ? `M0 0H${end - 8}` : isArriving ? `M18 0H${end}` : "M0 0H14";
      return `<g class="arrow" stroke="#1c2733" fill="#1c2733"><path class="shaft" d="${shaft}"/>${sample.fate === "lost" ? cross : trail}</g>`;
    }
    case "mark":
      return markShape(sample.mark, end / 2, RAISED.has(sample.mark) ? 6 : 0);
    case "line": {
      const whole = { node: 0, y: 0, x1: 0, x2: end };
      const band = { left: 0, right: end };
      if (sample.line === "leads") return stretchShape({ ...whole, condition: "up", leads: true }, band, hatch);
      return stretchShape({ ...whole, condition: sample.line, leads: false }, band, hatch);
    }
    case "track": {
      const track = { node: 0, text: "", row: 0, from: 0, to: 0, isSurplus: false };
      const line = stretchShape(
        { node: 0, y: -5, x1: 0, x2: end, condition: "up", leads: false },
        { left: 0, right: end },
        hatch,
      );
      return `${trackShape({ track, x1: 5, x2: end - 5, lifeY: -5, top: 0 }, { left: 0, right: end })}${line}`;
    }
    case "break":
      return breakShape(end / 2, 0);
  }
}

/** Marks that are drawn above the life line. */
const RAISED: ReadonlySet<MarkKind> = new Set(["event", "delivery", "command"]);

/** Draws two short strokes across the axis, where time is skipped. */
export const breakShape = (x: number, y: number): string =>
  `<path class="blank" d="M${round(x - 6)} ${y}H${round(x + 6)}"/><path class="break" d="M${round(x - 6)} ${y + 5}l6 -10M${round(x)} ${y + 5}l6 -10"/>`;

/** Draws one of the signs around a repeated part, as in a musical score. `x`: the outer edge. */
export function repeatShape(x: number, side: "begin" | "end", { top, bottom }: Repeat, { lanes }: Picture): string {
  const [thick, thin, point] = side === "begin" ? [2, 8, 13] : [-2, -8, -13];
  const spaces = lanes.slice(1).map(({ y }, index) => (y + (lanes[index]?.y ?? y)) / 2);
  return [
    `<path class="thick" d="M${round(x + thick)} ${round(top)}V${round(bottom)}"/>`,
    `<path class="thin" d="M${round(x + thin)} ${round(top)}V${round(bottom)}"/>`,
    ...spaces.map((y) => `<circle cx="${round(x + point)}" cy="${round(y)}" r="2.6"/>`),
  ].join("");
}

export const text = (x: number, y: number, content: string, style: string): string =>
  `<text class="${style}" x="${round(x)}" y="${round(y)}">${escaped(content)}</text>`;

/** Rounds to one decimal place, to keep files short. */
export const round = (value: number): number => Math.round(value * 10) / 10;

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Replaces characters that XML does not allow (control characters and lone surrogates) with question marks. */
export const escaped = (content: string): string =>
  content.replaceAll(/[&<>"]/g, (letter) => ENTITIES[letter] ?? letter).replaceAll(/[\p{Cc}\p{Cs}\ufffe\uffff]/gu, "?");

/** The sample shown next to a legend entry's text. */
export type Sample =
  | { readonly sort: "message"; readonly ink: Ink }
  | { readonly sort: "mark"; readonly mark: MarkKind }
  | { readonly sort: "fate"; readonly fate: Fate }
  | { readonly sort: "line"; readonly line: "leads" | "paused" | "down" }
  | { readonly sort: "track" }
  | { readonly sort: "break" };

export interface Key {
  readonly sample: Sample;
  readonly text: string;
  readonly x: number;
  readonly row: number;
}

export const LEGEND_PX = 11;
export const SAMPLE_PX = 34;
const AFTER_PX = 22;

const marks: readonly (readonly [MarkKind, string])[] = [
  ["start", "start"],
  ["crash", "crash"],
  ["command", "command"],
  ["timeout", "timeout"],
  ["event", "event"],
  ["delivery", "delivery"],
  ["choice", "choice"],
  ["fault", "fault"],
  ["gap", "entries missing"],
];

/** Lays out the legend from left to right, in rows of at most `width` pixels. */
export function legendOf(picture: Picture, inkwell: Inkwell, width: number): Key[] {
  const keys: Key[] = [];
  let [x, row] = [0, 0];
  for (const { sample, text } of meanings(picture, inkwell)) {
    const needed = SAMPLE_PX + 6 + textWidth(text, LEGEND_PX);
    if (x > 0 && x + needed > width) [x, row] = [0, row + 1];
    keys.push({ sample, text, x, row });
    x += needed + AFTER_PX;
  }
  return keys;
}

function meanings(picture: Picture, inkwell: Inkwell): { sample: Sample; text: string }[] {
  const { arrows, steps, stretches, breaks, tracks } = picture;
  const types = new Map(arrows.map(({ flight }) => [nameOf(flight.message).full, nameOf(flight.message).short]));
  const fates = new Set(arrows.map(({ fate }) => fate));
  const marked = new Set(steps.flatMap(({ inscription }) => inscription.marks));
  const line = (name: "leads" | "paused" | "down", text: string) => ({
    sample: { sort: "line", line: name } as const,
    text,
  });
  const fate = (name: Fate, text: string) => ({ sample: { sort: "fate", fate: name } as const, text });
  return [
    ...[...types].map(([full, short]) => ({
      sample: { sort: "message", ink: inkwell.of(full) } as const,
      text: short,
    })),
    ...(fates.has("lost") ? [fate("lost", "lost message")] : []),
    ...(fates.has("flying") ? [fate("flying", "in flight")] : []),
    ...(fates.has("arriving") ? [fate("arriving", "sent earlier")] : []),
    ...marks
      .filter(([mark]) => marked.has(mark))
      .map(([mark, text]) => ({ sample: { sort: "mark", mark } as const, text })),
    ...(tracks.length > 0 ? [{ sample: { sort: "track" } as const, text: "held back" }] : []),
    ...(stretches.some(({ leads }) => leads) ? [line("leads", "leader")] : []),
    ...(stretches.some(({ condition }) => condition === "paused") ? [line("paused", "paused")] : []),
    ...(stretches.some(({ condition }) => condition === "down") ? [line("down", "not running")] : []),
    ...(breaks.length > 0 ? [{ sample: { sort: "break" } as const, text: "time skipped" }] : []),
  ];
}
