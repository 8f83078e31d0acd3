/**
 * Draws a trace as a space-time diagram in SVG, for paper and web pages. The background is white, or dark if the reader
 * prefers dark colors. Types differ in shape and dash pattern as well as color, and text is real text. Two pictures on
 * the same page do not conflict, because all ids and style rules have a prefix derived from the picture.
 */
import { hash } from "../../core/plain.ts";
import { type Ink, Inkwell } from "../diagram/ink.ts";
import { beginningOf, type Excerpt } from "../excerpt.ts";
import { nameOf } from "../log.ts";
import { ARROW_LABEL_PX, TRACK_TEXT_PX } from "./arrow-labels.ts";
import type { Arrow } from "./arrows.ts";
import { textWidth } from "./boxes.ts";
import { darkStyle } from "./dark.ts";
import { type Band, layOut, type Picture, type Repeat, TICK_PX, textBoxes } from "./layout.ts";
import {
  arrowLabelShape,
  breakShape,
  escaped,
  LEGEND_PX,
  legendOf,
  lossLabelShape,
  plateShape,
  repeatShape,
  round,
  SAMPLE_PX,
  sampleShape,
  shaftShape,
  stepShape,
  stretchShape,
  text,
  tipShape,
  trackShape,
  trackTextShape,
} from "./svg-shapes.ts";
import { LABEL_PX } from "./timeline.ts";

export interface SvgOptions {
  /** The width of the picture in pixels. A picture that would be wider is cut into bands. Default: 1200. */
  readonly width?: number;
  /** The maximum number of entries to draw. If there are more, a note in the picture says so. Default: 3000. */
  readonly maxEntries?: number;
  /** Whether to show the vector clock of each step. */
  readonly clocks?: boolean;
  /** The ink index of each message, keyed by its full name, as returned by the protocol's `drawnAs()`. */
  readonly inks?: Readonly<Record<string, number>>;
  /**
   * Maps the short name of a request to the short name of its reply. The receiver is shown holding back a request until
   * it sends the reply.
   */
  readonly withheld?: Readonly<Record<string, string>>;
  /**
   * The prefix of all ids and style rules. It must begin with a letter. Default: derived from the picture, so that each
   * picture has its own.
   */
  readonly prefix?: string;
}

const FONT = "'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";
const MARGIN = 18;
const TITLE_PX = 17;
const NOTE_PX = 12.5;
const NODE_PX = 12.5;
const REPEATS_PX = 11;
const LINE_PX = 18;
const BAND_GAP_PX = 22;
const AXIS_PX = 22;
const LEAST_WIDTH_PX = 520;

/** Draws an excerpt of a trace as SVG. @returns the SVG document */
export function drawSvg(whole: Excerpt, options: SvgOptions = {}): string {
  const { width = 1_200, maxEntries = 3_000, clocks = false, inks, withheld = {} } = options;
  const excerpt = beginningOf(whole, maxEntries);
  const nodeWidth = Math.max(...excerpt.header.nodes.map((node) => textWidth(`node ${node}`, NODE_PX)), 0) + 10;
  const picture = layOut(excerpt, width - 2 * MARGIN - nodeWidth, { clocks, withheld });
  const widest = picture.bands.reduce((most, { left, right }) => Math.max(most, right - left), 0);
  const inner = Math.max(LEAST_WIDTH_PX, Math.ceil(nodeWidth + widest));
  const inkwell = new Inkwell(inks);
  const inkOf = ({ flight }: Arrow): Ink => inkwell.of(nameOf(flight.message).full);
  const notes = notesOf(whole, maxEntries).flatMap((note) => wrapped(note, inner));
  const top = MARGIN + TITLE_PX + notes.length * LINE_PX + 12;
  const bandHeight = picture.height + AXIS_PX;
  const legendTop = top + picture.bands.length * (bandHeight + BAND_GAP_PX) + 4;
  const legend = legendOf(picture, inkwell, inner);
  const height = Math.ceil(legendTop + ((legend.at(-1)?.row ?? 0) + 1) * LINE_PX + MARGIN - 6);
  const size = { width: inner + 2 * MARGIN, height };
  const inside = (prefix: string): string =>
    [
      text(0, MARGIN + TITLE_PX - 4, titleOf(whole), "title"),
      ...notes.map((note, index) => text(0, MARGIN + TITLE_PX + 16 + index * LINE_PX, note, "note")),
      ...picture.bands.map((band, index) => {
        const place = `translate(${round(nodeWidth - band.left)} ${round(top + index * (bandHeight + BAND_GAP_PX))})`;
        return `<g transform="${place}">\n${bandShape(picture, band, inkOf, `${prefix}-hatch`, whole)}\n</g>`;
      }),
      ...legend.map(({ sample, text: words, x, row }) => {
        const place = `translate(${round(x)} ${round(legendTop + row * LINE_PX)})`;
        return `<g transform="${place}">${sampleShape(sample, `${prefix}-hatch`)}${text(SAMPLE_PX + 6, 4, words, "key")}</g>`;
      }),
    ].join("\n");
  const prefix = options.prefix ?? `t${hash(inside("")).toString(36)}`;
  const rules = style(prefix) + (clocks ? `\n#${prefix} .clock { fill: #1f5fa8 }` : "");
  return framed(inside(prefix), { ...size, prefix, rules }, titleOf(whole), notes);
}

interface Frame {
  readonly width: number;
  readonly height: number;
  readonly prefix: string;
  readonly rules: string;
}

function framed(
  inside: string,
  { width, height, prefix, rules }: Frame,
  title: string,
  notes: readonly string[],
): string {
  const hatch = `<defs><pattern id="${prefix}-hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="5" height="5" fill="#ffffff"/><path d="M0 0V5" stroke="#1c2733" stroke-width="2"/></pattern></defs>`;
  const drawn = [
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<g transform="translate(${MARGIN} 0)" fill="#1c2733">`,
    inside,
    "</g>",
  ].join("\n");
  const style = `${rules}\n${darkStyle(rules, hatch + drawn, `#${prefix} `)}`;
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" id="${prefix}" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<desc>${escaped(notes.join(" "))}</desc>`,
    hatch,
    `<style>${style}</style>`,
    drawn,
    "</svg>",
  ].join("\n")}\n`;
}

function bandShape(
  picture: Picture,
  band: Band,
  inkOf: (arrow: Arrow) => Ink,
  hatch: string,
  excerpt: Excerpt,
): string {
  const isIn = (x: number): boolean => x >= band.left && x < band.right;
  const yOf = new Map(picture.lanes.map(({ node, y }) => [node, y]));
  const isLast = band === picture.bands.at(-1);
  const { repeat } = picture;
  return [
    ...picture.ticks.filter(({ x, text: words }) => isIn(x) && words !== "").map(({ x }) => guide(x, picture)),
    ...picture.tracks.map((track) => trackShape(track, band)),
    ...picture.arrows.map((arrow) => shaftShape(arrow, band, inkOf(arrow))),
    ...picture.arrows.map((arrow) => tipShape(arrow, band, inkOf(arrow))),
    ...textBoxes(picture)
      .filter(({ x }) => isIn(x))
      .map(plateShape),
    ...picture.stretches.map((stretch) => stretchShape(stretch, band, hatch)),
    ...picture.lanes.map(({ node, y }) => text(band.left - 8, y + 4.3, `node ${node}`, "node")),
    ...picture.arrowLabels.filter(({ box }) => isIn(box.x)).map((label) => arrowLabelShape(label, inkOf)),
    ...picture.lossLabels.filter(({ box }) => isIn(box.x)).map(lossLabelShape),
    ...picture.tracks.flatMap(({ track, texts }) =>
      texts.filter(({ x }) => isIn(x)).map((box) => trackTextShape(track, box)),
    ),
    ...picture.steps.filter(({ x }) => isIn(x)).map((step) => stepShape(step, yOf.get(step.step.node) ?? 0)),
    ...axis(picture, band, unitOf(excerpt)),
    ...(repeat !== null && isIn(repeat.from) ? [repeatBegins(repeat, band, picture)] : []),
    ...(repeat !== null && isLast ? [repeatEnds(repeat, picture)] : []),
  ]
    .filter((part) => part !== "")
    .join("\n");
}

const guide = (x: number, { height, lanes }: Picture): string =>
  `<path class="guide" d="M${round(x)} ${(lanes[0]?.y ?? 0) - 14}V${round(height)}"/>`;

function repeatBegins(repeat: Repeat, band: Band, picture: Picture): string {
  const words = "repeats forever";
  const x = Math.max(band.left, Math.min(repeat.from, band.right - textWidth(words, REPEATS_PX)));
  return `<g class="repeat">${repeatShape(repeat.from, "begin", repeat, picture)}${text(x, repeat.top - 5, words, "repeats")}</g>`;
}

const repeatEnds = (repeat: Repeat, picture: Picture): string =>
  `<g class="repeat">${repeatShape(repeat.to, "end", repeat, picture)}</g>`;

function axis({ ticks, breaks, height }: Picture, { left, right }: Band, unit: string): string[] {
  const isIn = (x: number): boolean => x >= left && x < right;
  return [
    `<path class="axis" d="M${round(left)} ${height}H${round(right)}"/>`,
    ...breaks.filter(isIn).map((x) => breakShape(x, height)),
    ...ticks
      .filter(({ x }) => isIn(x))
      .map(({ x, text: words }) => {
        const tick = `<path class="axis" d="M${round(x)} ${height}v${words === "" ? 3 : 5}"/>`;
        return words === "" ? tick : tick + text(x, height + 16, words, "tick");
      }),
    text(left - 8, height + 16, unit, "unit"),
  ];
}

const unitOf = ({ header }: Excerpt): string => (header.madeBy === "checker" ? "step" : "ms");

function titleOf({ header }: Excerpt): string {
  const { protocol, variant, nodes, seed, violation, madeBy } = header;
  const what = variant === null ? protocol : `${protocol}, ${variant}`;
  const many = nodes.length === 1 ? "1 node" : `${nodes.length} nodes`;
  const verdict = violation === null ? "" : `: ${violation.property} does not hold`;
  const origin = madeBy === "cluster" ? ", recorded live" : seed === null ? "" : `, seed ${seed}`;
  return `${what}, ${many}${origin}${verdict}`;
}

function notesOf({ header, entries, origin }: Excerpt, maxEntries: number): string[] {
  const { violation } = header;
  const last = entries[maxEntries - 1];
  return [
    ...(violation === null ? [] : [`Claimed: ${violation.claim}.`]),
    ...(header.madeBy === "cluster" ? ["A recording of real processes, each by its own clock."] : []),
    ...(entries.length === 0 ? ["Nothing happened in this part of the trace."] : []),
    ...(entries.length > maxEntries && last !== undefined
      ? [
          `Only the first ${maxEntries} of ${entries.length} entries are drawn, up to ${round(last.at - origin)} ms: ` +
            "choose another part with --from and --to.",
        ]
      : []),
  ];
}

/** Wraps a note into lines of at most `width` pixels. */
function wrapped(note: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of note.split(" ")) {
    const longer = lines.length === 0 ? word : `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && textWidth(longer, NOTE_PX) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

function style(prefix: string): string {
  const rules: Readonly<Record<string, string>> = {
    text: `font-family: ${FONT}`,
    ".title": `font-size: ${TITLE_PX}px; font-weight: 600`,
    ".note": `font-size: ${NOTE_PX}px`,
    ".node": `font-size: ${NODE_PX}px; font-weight: 600; text-anchor: end`,
    ".key": `font-size: ${LEGEND_PX}px`,
    ".label": `font-size: ${LABEL_PX}px; paint-order: stroke; stroke: #ffffff; stroke-width: 3px; stroke-linejoin: round`,
    ".delivered": "font-weight: 600; fill: #0b5427",
    ".role": "font-style: italic; fill: #46525f",
    ".name": `font-size: ${ARROW_LABEL_PX}px; text-anchor: middle; paint-order: stroke; stroke: #ffffff; stroke-width: 3px; stroke-linejoin: round`,
    ".why": "font-style: italic",
    ".tick": `font-size: ${TICK_PX}px; text-anchor: middle; fill: #46525f`,
    ".unit": `font-size: ${TICK_PX}px; text-anchor: end; fill: #46525f`,
    ".guide": "stroke: #e8ecf0; stroke-width: 1",
    ".axis": "stroke: #7a8794; stroke-width: 1; fill: none",
    ".blank": "stroke: #ffffff; stroke-width: 3",
    ".break": "stroke: #1c2733; stroke-width: 1.3; fill: none",
    ".life": "stroke: #1c2733; stroke-width: 1.3",
    ".leads": "stroke: #1c2733; stroke-width: 1.5",
    ".plate": "fill: #ffffff",
    ".under": "stroke: #ffffff; stroke-width: 5",
    ".down": "stroke: #9aa5b0; stroke-width: 1; stroke-dasharray: 1 5; stroke-linecap: round",
    ".paused": "stroke: #1c2733; stroke-width: 1",
    ".shaft": "fill: none; stroke-width: 1.5",
    ".casing": "fill: none; stroke: #ffffff; stroke-width: 4",
    ".head": "stroke: none",
    ".open": "fill: #ffffff; stroke: inherit; stroke-width: 1.5",
    ".lost": "fill: none; stroke-width: 2.4",
    ".dot": "fill: #1c2733",
    ".mark": "fill: #ffffff; stroke: #1c2733; stroke-width: 1.4; stroke-linejoin: round; stroke-linecap: round",
    ".start": "stroke-width: 2.4",
    ".crash": "stroke: #b3261e; stroke-width: 3",
    ".event": "fill: #1c2733",
    ".command": "fill: #c9d3dd",
    ".delivery": "fill: none; stroke: #0f6b33; stroke-width: 2.4",
    ".fault": "fill: #f2c200",
    ".gap": "fill: none",
    ".track": "fill: #fae6b1; stroke: #946300; stroke-width: 0.9",
    ".slip": "fill: #fae6b1",
    ".surplus": "stroke-dasharray: 3 2",
    ".stem": "fill: none; stroke: #946300; stroke-width: 0.9",
    ".id": `font-size: ${TRACK_TEXT_PX}px`,
    ".leader": "stroke: #7a8794; stroke-width: 1",
    ".thick": "stroke: #1c2733; stroke-width: 4",
    ".thin": "stroke: #1c2733; stroke-width: 1.3",
    ".repeats": `font-size: ${REPEATS_PX}px; font-style: italic`,
  };
  return Object.entries(rules)
    .map(([selector, rule]) => `#${prefix} ${selector} { ${rule} }`)
    .join("\n");
}
