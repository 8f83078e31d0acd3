/** Which share of the runs is undecided after some time, as SVG: a line for each setting, on logarithmic axes. */
import { inDark } from "../../src/trace/picture/dark.ts";
import { type Figures, NODES, UNTIL_MS } from "./figures.ts";

const WIDTH = 760;
const LEFT = 74;
const TOP = 52;
const ACROSS = WIDTH - LEFT - 30;
const HIGH = 300;
const HEIGHT = TOP + HIGH + 156;

const INK = "#1c2733";
const FAINT = "#d5dde5";
const LINES = [
  { colour: "#1d4ed8", dash: "" },
  { colour: "#0f766e", dash: "2 4" },
  { colour: "#7c3aed", dash: "7 4" },
  { colour: "#c2410c", dash: "" },
] as const;

const FROM_MS = 10;
/** One run in so many is the least that is drawn. */
const LEAST = 1e-4;

export function picture(figures: readonly Figures[]): string {
  return inDark(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" font-family="DejaVu Sans, Verdana, sans-serif">
<title>Duelling proposers of Paxos: the share of runs that are undecided, against time</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>
<text x="${LEFT}" y="26" font-size="14" font-weight="bold" fill="${INK}">share of runs in which nobody has decided yet</text>
<g transform="translate(${LEFT} ${TOP})">
${grid()}
${figures.map(line).join("\n")}
<text x="${ACROSS / 2}" y="${HIGH + 36}" text-anchor="middle" font-size="12.5" fill="${INK}">milliseconds of virtual time since all ${NODES} proposed</text>
</g>
${figures.map(legend).join("\n")}
</svg>
`);
}

function line({ decidedAt }: Figures, i: number): string {
  let path = `M0 ${short(down(1))}`;
  for (const [rank, at] of decidedAt.entries()) {
    if (at === null) break;
    const left = decidedAt.length - rank - 1;
    path += `H${short(right(at))}V${short(down(left / decidedAt.length))}`;
  }
  if (decidedAt.at(-1) === null) path += `H${ACROSS}`;
  const { colour, dash } = LINES[i] as (typeof LINES)[number];
  return `<path d="${thinned(path)}" fill="none" stroke="${colour}" stroke-width="2"${dashed(dash)}/>`;
}

/** Steps that fall on the same tenth of a pixel are drawn once. */
const thinned = (path: string): string => path.replaceAll(/(H[\d.]+)(?:V[\d.]+\1)+/g, "$1");

function grid(): string {
  const times = [10, 100, 1_000, 10_000];
  const shares = [1, 0.1, 0.01, 0.001, LEAST];
  const text = (x: number, y: number, anchor: string, written: string): string =>
    `<text x="${short(x)}" y="${short(y)}" text-anchor="${anchor}" font-size="11.5" fill="${INK}">${written}</text>`;
  return [
    ...times.map(
      (ms) =>
        `<path d="M${short(right(ms))} 0V${HIGH}" stroke="${FAINT}"/>${text(right(ms), HIGH + 16, "middle", String(ms))}`,
    ),
    ...shares.map((share) => {
      const y = short(down(share));
      return `<path d="M0 ${y}H${ACROSS}" stroke="${FAINT}"/>${text(-8, down(share) + 4, "end", String(share))}`;
    }),
  ].join("\n");
}

function legend({ name, decidedAt }: Figures, i: number): string {
  const { colour, dash } = LINES[i] as (typeof LINES)[number];
  const x = LEFT;
  const y = TOP + HIGH + 66 + 22 * i;
  const undecided = decidedAt.filter((at) => at === null).length;
  const rest = undecided === 0 ? "all decide" : `${undecided} undecided after ${UNTIL_MS / 1_000} s`;
  const runs = decidedAt.length === 1 ? "1 run" : `${number.format(decidedAt.length)} seeds`;
  return `<path d="M${x} ${y}h34" stroke="${colour}" stroke-width="2"${dashed(dash)}/><text x="${x + 42}" y="${y + 4}" font-size="12.5" fill="${INK}">${name}: ${runs}, ${rest}</text>`;
}

const right = (ms: number): number =>
  (ACROSS * Math.log10(Math.max(ms, FROM_MS) / FROM_MS)) / Math.log10(UNTIL_MS / FROM_MS);
const down = (share: number): number => (HIGH * Math.log10(Math.max(share, LEAST))) / Math.log10(LEAST);
const dashed = (dash: string): string => (dash === "" ? "" : ` stroke-dasharray="${dash}"`);
const number = new Intl.NumberFormat("en-US");
const short = (x: number): string => String(Math.round(10 * x) / 10);
