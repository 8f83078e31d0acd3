/**
 * The history of one object as an SVG: a bar per operation, numbered points where they take effect, the culprit hatched
 * and crossed.
 */

import { darkStyle } from "../../../trace/picture/dark.ts";
import { escaped, round } from "../../../trace/picture/svg-shapes.ts";
import type { Finding } from "../check.ts";
import type { Remark } from "../history.ts";
import { captionOf, omissions } from "./caption.ts";
import { type Bar, type Layout, layOut, type Point } from "./layout.ts";

export interface PictureOptions {
  /** The name of the model, for the title. */
  readonly model: string;
  readonly remarks?: readonly Remark[];
  /** More are cut away around the place that matters. In an SVG 60 unless told, in a text 20. */
  readonly maxOperations?: number;
}

const FONT = "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif";
const LETTER = 7.2;
const MARGIN = 20;
const LABELS = 92;
const BAR_HEIGHT = 30;
const ROW_HEIGHT = 56;
const RADIUS = 9;
const STATE_HEIGHT = 24;

const metrics = { text: (content: string): number => [...content].length * LETTER, gap: 26, padding: 22 };

const STYLE = `
  text { font: 13px ${FONT}; fill: #1d2733; }
  .title { font-size: 17px; font-weight: 600; }
  .quiet { fill: #5b6875; font-size: 12px; }
  .row { stroke: #e3e8ed; }
  .bar { stroke-width: 1.5; }
  .placed { fill: #dcebfa; stroke: #2f6fab; }
  .unplaced { fill: #ffffff; stroke: #7a8794; stroke-dasharray: 5 3; }
  .culprit { fill: url(#hatch); stroke: #b3261e; stroke-width: 3; }
  .culprit-label { font-weight: 700; fill: #8c1d18; paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }
  .cross { stroke: #b3261e; stroke-width: 3.5; stroke-linecap: round; }
  .order { fill: none; stroke: #2f6fab; stroke-opacity: 0.35; }
  .point { fill: #ffffff; stroke: #2f6fab; stroke-width: 2; }
  .number { font-size: 11px; font-weight: 600; text-anchor: middle; fill: #17446f; }
  .state { fill: #f2f5f8; stroke: #c3ccd5; }
  .remark { stroke: #8a6d00; stroke-dasharray: 2 4; }
  .remark-text { fill: #6b5500; font-size: 12px; }`;

const HATCH =
  '<pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">' +
  '<rect width="7" height="7" fill="#fdeceb"/><path d="M0 0V7" stroke="#e2a29e" stroke-width="3"/></pattern>';

export function drawSvg(finding: Finding, options: PictureOptions): string {
  const { title, sentences } = captionOf(finding, options.model);
  const layout = layOut(finding, options.remarks ?? [], options.maxOperations ?? 60, metrics);
  const notes = [...sentences, ...omissions(layout.left)];
  const top = MARGIN + 30 + notes.length * 19 + (layout.remarks.length > 0 ? 24 : 8);
  const bottom = top + layout.rows.length * ROW_HEIGHT;
  const height = bottom + (layout.points.length > 0 ? STATE_HEIGHT + 14 : 0) + 24 + MARGIN;
  const longest = Math.max(legend(layout).length, ...notes.map((note) => note.length)) * 6.8;
  const width = Math.ceil(Math.max(LABELS + layout.width + 30, longest) + 2 * MARGIN);
  const drawn = [
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(MARGIN, MARGIN + 14, title, "title"),
    ...notes.map((note, index) => text(MARGIN, MARGIN + 38 + index * 19, note)),
    `<g transform="translate(${MARGIN + LABELS} ${top})">`,
    ...rowLines(layout),
    ...layout.remarks.map(({ x, text: words }) => remark(round(x), words, bottom - top)),
    order(layout),
    ...layout.bars.map(bar),
    ...layout.points.map(point),
    ...stateStrip(layout, bottom - top + 6),
    text(-LABELS, height - top - MARGIN, legend(layout), "quiet"),
    "</g>",
  ].join("\n");
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<desc>${escaped(notes.join(" "))}</desc>`,
    `<defs>${HATCH}</defs>`,
    `<style>${STYLE}\n${darkStyle(STYLE, HATCH + drawn)}\n</style>`,
    drawn,
    "</svg>",
  ];
  return `${parts.join("\n")}\n`;
}

function rowLines({ rows, width }: Layout): string[] {
  return rows.flatMap(({ process }, row) => {
    const y = row * ROW_HEIGHT + BAR_HEIGHT / 2;
    const isSame = rows[row - 1]?.process === process;
    return [
      `<path class="row" d="M-6 ${y}H${round(width + 20)}"/>`,
      ...(isSame ? [] : [text(-LABELS, y + 4.5, `process ${process}`, "quiet")]),
    ];
  });
}

function bar({ from, to, row, label, standing, operation }: Bar): string {
  const [x, y, width] = [round(from), row * ROW_HEIGHT, round(to - from)];
  const isOpen = operation.return === null;
  const end = round(from + width);
  // What never returned has no right edge, only a torn one.
  const outline = isOpen
    ? `M${round(end + 14)} ${y}H${x}V${y + BAR_HEIGHT}H${round(end + 14)}l-6 -7.5l6 -7.5l-6 -7.5Z`
    : `M${x} ${y}h${width}v${BAR_HEIGHT}h-${width}Z`;
  const isCulprit = standing === "culprit";
  return [
    `<g><title>${escaped(label)}</title>`,
    `<path class="bar ${standing}" stroke-linejoin="round" d="${outline}"/>`,
    text(x + 8, y + 15, label, isCulprit ? "culprit-label" : undefined),
    ...(isCulprit ? [cross(round(from + width / 2), y + BAR_HEIGHT)] : []),
    "</g>",
  ].join("");
}

const cross = (x: number, y: number): string =>
  `<circle cx="${x}" cy="${y}" r="${RADIUS + 2}" fill="#ffffff" stroke="#b3261e" stroke-width="2"/>` +
  `<path class="cross" d="M${x - 5} ${y - 5}l10 10m0 -10l-10 10"/>`;

/** From point to point, behind the bars. */
function order({ points }: Layout): string {
  const corners = points.map(({ x, row }) => `${round(x)} ${pointY(row)}`);
  return corners.length === 0 ? "" : `<path class="order" d="M${corners.join("L")}"/>`;
}

const pointY = (row: number): number => row * ROW_HEIGHT + BAR_HEIGHT;

const point = ({ x, row, number }: Point): string =>
  `<rect class="point" x="${round(x - pointWidth(number) / 2)}" y="${pointY(row) - RADIUS}" width="${pointWidth(number)}" height="${2 * RADIUS}" rx="${RADIUS}"/>` +
  text(x, pointY(row) + 4, String(number), "number");

/** A circle, drawn out where the number needs it. */
const pointWidth = (number: number): number => Math.max(2 * RADIUS, 8 + 7 * String(number).length);

function stateStrip({ points, width }: Layout, y: number): string[] {
  if (points.length === 0) return [];
  const changes = points.filter(({ state }) => state !== null);
  const cells = changes.map(({ x, state }, at) => {
    const end = changes[at + 1]?.x ?? width;
    return (
      `<rect class="state" x="${round(x)}" y="${y}" width="${round(end - x)}" height="${STATE_HEIGHT}"/>` +
      text(x + 6, y + 16.5, state ?? "")
    );
  });
  return [text(-LABELS, y + 16.5, "state", "quiet"), ...cells];
}

/** Explains only what there is. */
function legend({ bars, points }: Layout): string {
  const words = [
    points.length > 0 ? "① takes effect here, in this order" : "",
    bars.some(({ standing }) => standing === "unplaced") ? "dashed: not placed" : "",
    bars.some(({ operation }) => operation.return === null) ? "torn edge: never returned" : "",
    bars.some(({ standing }) => standing === "culprit") ? "hatched and crossed: has no place" : "",
  ];
  return words.filter((word) => word !== "").join(" · ");
}

const remark = (x: number, words: string, height: number): string =>
  `<path class="remark" d="M${x} -8V${height}"/>${text(x - 3, -12, words, "remark-text")}`;

const text = (x: number, y: number, content: string, style?: string): string =>
  `<text x="${round(x)}" y="${round(y)}"${style === undefined ? "" : ` class="${style}"`}>${escaped(content)}</text>`;
