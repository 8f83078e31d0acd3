/** Acknowledgements against members, and how long the sender is at work with them, as SVG: a line for each method. */
import { inDark } from "../../src/trace/picture/dark.ts";
import { type Figures, methods } from "./figures.ts";

const SIDE = 330;
const GAP = 70;
const TOP = 56;
const WIDTH = 2 * SIDE + 2 * GAP + 20;
const HEIGHT = TOP + SIDE + 152;

const INK = "#1c2733";
const FAINT = "#d5dde5";
/** For each method, in their order. */
const LINES: readonly { readonly colour: string; readonly dash: string }[] = [
  { colour: "#c2410c", dash: "" },
  { colour: "#7c3aed", dash: "7 4" },
  { colour: "#0f766e", dash: "2 4" },
  { colour: "#1d4ed8", dash: "" },
];

type Point = readonly [x: number, y: number];

interface Axis {
  /** Powers of ten from here, with 0 below them, at the foot of the picture. */
  readonly from: number;
  readonly to: number;
}

const members: Axis = { from: 0, to: 3 };
const counts: Axis = { from: 0, to: 3 };
const times: Axis = { from: 0, to: 3 };
/** So much of the height belongs to 0. */
const FOOT = 0.08;

export function picture(figures: readonly Figures[], processing: number): string {
  const panels = [
    panel(0, "acknowledgements at the sender", counts, figures, ({ acknowledgements }) => acknowledgements),
    panel(1, "until the sender is done, message times", times, figures, ({ doneAfter }) => doneAfter),
  ];
  return inDark(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" font-family="DejaVu Sans, Verdana, sans-serif">
<title>Acknowledgements of one multicast at its sender, against the number of members</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>
${panels.join("\n")}
${legend(processing)}
</svg>
`);
}

function panel(
  column: number,
  title: string,
  axis: Axis,
  figures: readonly Figures[],
  figureOf: (figures: Figures) => number,
): string {
  const x = GAP + column * (SIDE + GAP);
  const lines = methods.map(({ name }, i) => {
    const points = figures
      .filter(({ method }) => method === name)
      .map((each): Point => [across(each.nodes), up(axis, figureOf(each))]);
    const { colour, dash } = LINES[i] as (typeof LINES)[number];
    const dots = points.map(([px, py]) => `<circle cx="${short(px)}" cy="${short(py)}" r="2.6" fill="${colour}"/>`);
    const path = points.map(([px, py]) => `${short(px)} ${short(py)}`).join("L");
    return `<path d="M${path}" fill="none" stroke="${colour}" stroke-width="2"${dash === "" ? "" : ` stroke-dasharray="${dash}"`}/>${dots.join("")}`;
  });
  return `<g transform="translate(${x} ${TOP})"><text x="${SIDE / 2}" y="-20" text-anchor="middle" font-size="14" font-weight="bold" fill="${INK}">${title}</text>
${grid(axis)}
${lines.join("\n")}
<text x="${SIDE / 2}" y="${SIDE + 36}" text-anchor="middle" font-size="12.5" fill="${INK}">members, N</text></g>`;
}

function grid(axis: Axis): string {
  const powers = ({ from, to }: Axis): number[] => Array.from({ length: to - from + 1 }, (_, i) => 10 ** (from + i));
  const text = (x: number, y: number, anchor: string, value: number): string =>
    `<text x="${short(x)}" y="${short(y)}" text-anchor="${anchor}" font-size="11.5" fill="${INK}">${number.format(value)}</text>`;
  return [
    ...powers(members).map((value) => {
      const x = short(across(value));
      return `<path d="M${x} 0V${SIDE}" stroke="${FAINT}"/>${text(across(value), SIDE + 16, "middle", value)}`;
    }),
    ...[0, ...powers(axis)].map((value) => {
      const y = up(axis, value);
      return `<path d="M0 ${short(y)}H${SIDE}" stroke="${FAINT}"/>${text(-6, y + 4, "end", value)}`;
    }),
  ].join("\n");
}

function legend(processing: number): string {
  const top = TOP + SIDE + 62;
  const rows = methods.map(({ name }, i) => {
    const { colour, dash } = LINES[i] as (typeof LINES)[number];
    const x = GAP + (i % 2) * (SIDE + GAP);
    const y = top + 22 * Math.floor(i / 2);
    return `<path d="M${x} ${y}h34" stroke="${colour}" stroke-width="2"${dash === "" ? "" : ` stroke-dasharray="${dash}"`}/><circle cx="${x + 17}" cy="${y}" r="2.6" fill="${colour}"/><text x="${x + 42}" y="${y + 4}" font-size="12.5" fill="${INK}">${name}</text>`;
  });
  const note = `One multicast; a node is busy for ${processing} message times with each message. Simulated.`;
  const none = "0 where all speak: each says in its own messages what it has received, and no acknowledgement comes.";
  const line = (y: number, text: string): string =>
    `<text x="${GAP}" y="${y}" font-size="12.5" fill="${INK}">${text}</text>`;
  return [...rows, line(top + 56, note), line(top + 74, none)].join("\n");
}

const across = (nodes: number): number => (SIDE * (Math.log10(nodes) - members.from)) / (members.to - members.from);

function up({ from, to }: Axis, value: number): number {
  const share = value < 10 ** from ? 0 : FOOT + ((1 - FOOT) * (Math.log10(value) - from)) / (to - from);
  return SIDE * (1 - Math.min(share, 1));
}

const number = new Intl.NumberFormat("en-US");
const short = (x: number): string => String(Math.round(10 * x) / 10);
