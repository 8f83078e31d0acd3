/** The figure as SVG: of how many trials the time without a leader was no longer than that, above by spread, below by length. */
import { inDark } from "../../src/trace/picture/dark.ts";
import { type Line, nameOf } from "./figures.ts";

const WIDTH = 720;
const LEFT = 62;
const RIGHT = 130;
const PLOT = { width: WIDTH - LEFT - RIGHT, height: 190 };
const TOP = 40;
const GAP = 76;
const INK = "#1c2733";
const FAINT = "#c3ccd6";
const COLOURS = ["#7c3aed", "#b45309", "#c2410c", "#15803d", "#0369a1", "#1c2733"];

interface Axis {
  readonly ticks: readonly number[];
  /** From 0 to 1 along the axis. */
  at(ms: number): number;
}

/** Equal factors are equally far apart. */
function logarithmic(from: number, to: number, ticks: readonly number[]): Axis {
  return { ticks, at: (ms) => (Math.log(ms) - Math.log(from)) / (Math.log(to) - Math.log(from)) };
}

const linear = (to: number, step: number): Axis => ({
  ticks: Array.from({ length: to / step + 1 }, (_, i) => i * step),
  at: (ms) => ms / to,
});

export function picture(above: readonly Line[], below: readonly Line[]): string {
  const height = TOP + 2 * PLOT.height + GAP + 56;
  return inDark(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="DejaVu Sans, Verdana, sans-serif" font-size="12">
<title>Time without a leader against the spread and the length of election time-outs: Raft, five servers</title>
<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>
${panel(TOP, "election time-outs with more and more randomness", above, logarithmic(70, 20_000, [100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000]))}
${panel(TOP + PLOT.height + GAP, "shorter and shorter election time-outs", below, linear(600, 100))}
</svg>
`);
}

function panel(top: number, title: string, lines: readonly Line[], axis: Axis): string {
  const x = (ms: number): number => round(LEFT + PLOT.width * Math.min(1, Math.max(0, axis.at(ms))));
  const y = (share: number): number => round(top + PLOT.height * (1 - share));
  const grid = [0, 0.25, 0.5, 0.75, 1].map(
    (share) =>
      `<path d="M${LEFT} ${y(share)}h${PLOT.width}" stroke="${FAINT}" stroke-width="0.6"/><text x="${LEFT - 8}" y="${y(share) + 4}" text-anchor="end" fill="${INK}">${100 * share} %</text>`,
  );
  const ticks = axis.ticks.map(
    (ms) =>
      `<path d="M${x(ms)} ${top}v${PLOT.height}" stroke="${FAINT}" stroke-width="0.6"/><text x="${x(ms)}" y="${top + PLOT.height + 16}" text-anchor="middle" fill="${INK}">${count.format(ms)}</text>`,
  );
  const curves = lines.map((line, at) => curve(line, COLOURS[at % COLOURS.length] as string, x, y));
  const legend = lines.map((line, at) => {
    const yAt = top + 12 + 20 * at;
    return `<path d="M${WIDTH - RIGHT + 14} ${yAt}h18" stroke="${COLOURS[at % COLOURS.length]}" stroke-width="2"/><text x="${WIDTH - RIGHT + 38}" y="${yAt + 4}" fill="${INK}">${nameOf(line)}</text>`;
  });
  const caption = `<text x="${LEFT + PLOT.width / 2}" y="${top + PLOT.height + 34}" text-anchor="middle" fill="${INK}">time without a leader, ms</text>`;
  return [
    `<text x="${LEFT}" y="${top - 12}" font-size="14" font-weight="bold" fill="${INK}">${title}</text>`,
    ...grid,
    ...ticks,
    ...curves,
    ...legend,
    caption,
  ].join("\n");
}

/** So many points are enough to draw a curve by. */
const POINTS = 100;

function curve({ downtimes }: Line, colour: string, x: (ms: number) => number, y: (share: number) => number): string {
  const step = Math.max(1, Math.floor(downtimes.length / POINTS));
  const points = downtimes.flatMap((ms, at) =>
    at % step === 0 || at === downtimes.length - 1 ? [`${x(ms)} ${y((at + 1) / downtimes.length)}`] : [],
  );
  return `<path d="M${points.join("L")}" stroke="${colour}" stroke-width="2" fill="none"/>`;
}

const count = new Intl.NumberFormat("en-US");

const round = (pixels: number): number => Math.round(10 * pixels) / 10;
