/** Both methods side by side, as SVG: the ring with its super-peers, and the plane, where each node is tied to its own. */
import type { NodeId } from "../../src/core/protocol.ts";
import { inDark } from "../../src/trace/picture/dark.ts";
import type { Assignment } from "./figures.ts";
import { type DhtRun, type Elected, plane, ring, type TokenRun, type Wanted } from "./methods.ts";

const SIDE = 330;
const GAP = 30;
const TOP = 62;
const WIDTH = 3 * SIDE + 4 * GAP;
const HEIGHT = TOP + SIDE + 92;
/** So many nodes are drawn at most. */
const MAX_DOTS = 2_500;

/** From the middle of a super-peer to a corner, at most. */
const MARK_PX = 4.6;

const INK = "#1c2733";
const FAINT = "#8fa0b3";
const MARK = "#c2410c";

export function picture(wanted: Wanted, dht: DhtRun, tokens: TokenRun, lots: Elected): string {
  const step = Math.ceil(wanted.nodes.length / MAX_DOTS);
  const drawn = wanted.nodes.filter((node) => node % step === 0);
  const percent = (part: number): string => `${(100 * part).toFixed(2)} %`;
  const captions = (elected: Elected, where: string): string[] => {
    const { superPeers, share, unevenness, load } = elected.figures;
    return [
      `${superPeers.toFixed(0)} super-peers: ${percent(share)} of all, ${percent(wanted.share)} wanted`,
      `unevenness ${unevenness.toFixed(2)} ${where}`,
      `load ${load.mean.toFixed(0)} in the mean, ${load.most.toFixed(0)} at most`,
    ];
  };
  const panels = [
    panel(0, "super-peer-dht, on the ring", ringShapes(dht.served, drawn), captions(dht, "of arcs")),
    panel(1, "by lot, in the space", spaceShapes(lots.served, drawn), captions(lots, "of areas (20 placements)")),
    panel(2, "super-peer-tokens, in the space", spaceShapes(tokens.served, drawn), captions(tokens, "of areas")),
  ];
  const note =
    step === 1
      ? `${count.format(wanted.nodes.length)} nodes`
      : `${count.format(wanted.nodes.length)} nodes, of which every ${ordinal(step)} is drawn`;
  return inDark(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" font-family="DejaVu Sans, Verdana, sans-serif">
<title>Super-peers elected by two methods, and as many drawn by lot</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>
<text x="${GAP}" y="26" font-size="13" fill="${INK}">${note}</text>
${legend()}
${panels.join("\n")}
</svg>
`);
}

function legend(): string {
  const x = WIDTH - GAP - 330;
  return `<circle cx="${x}" cy="22" r="1.6" fill="${FAINT}"/><text x="${x + 8}" y="26" font-size="12" fill="${INK}">node, tied to its super-peer</text>
<path d="${diamond(x + 230, 22)}" fill="${MARK}" stroke="#ffffff" stroke-width="0.8"/><text x="${x + 240}" y="26" font-size="12" fill="${INK}">super-peer</text>`;
}

function panel(column: number, title: string, shapes: string, captions: readonly string[]): string {
  const x = GAP + column * (SIDE + GAP);
  const lines = captions.map(
    (line, i) => `<text x="0" y="${SIDE + 24 + 19 * i}" font-size="12.5" fill="${INK}">${line}</text>`,
  );
  return `<g transform="translate(${x} ${TOP})"><text x="0" y="-12" font-size="15" font-weight="bold" fill="${INK}">${title}</text>
${shapes}
${lines.join("")}</g>`;
}

/** Nodes in a band along the ring, so that one sees them; super-peers inside it, tied to the ends of their territories. */
function ringShapes(served: Assignment, drawn: readonly NodeId[]): string {
  const [outer, inner] = [SIDE / 2 - 4, SIDE / 2 - 30];
  const whole = ring.placeOfKey(2 ** 24 - 1) + ring.placeOfKey(1);
  const at = (node: NodeId, radius: number): [number, number] => {
    const angle = (2 * Math.PI * ring.placeOf(node)) / whole - Math.PI / 2;
    return [SIDE / 2 + radius * Math.cos(angle), SIDE / 2 + radius * Math.sin(angle)];
  };
  const dots = drawn.map((node) => {
    const [x, y] = at(
      node,
      inner + 8 + (outer - inner - 8) * plane.pointOf(node).reduce((sum, each) => (sum + each) % 1),
    );
    return { x, y, tie: at(served.get(node) as NodeId, inner - 4) };
  });
  const ties = dots.map(({ x, y, tie }) => `M${short(x)} ${short(y)}L${short(tie[0])} ${short(tie[1])}`);
  const superPeers = [...new Set(served.values())];
  const size = Math.min(MARK_PX, (0.45 * 2 * Math.PI * (inner - 4)) / superPeers.length);
  const marks = superPeers.map((node) => diamond(...at(node, inner - 4), size));
  return [
    `<circle cx="${SIDE / 2}" cy="${SIDE / 2}" r="${outer}" fill="none" stroke="${FAINT}" stroke-width="0.8"/>`,
    `<path d="${ties.join("")}" stroke="${FAINT}" stroke-width="0.35" stroke-opacity="0.8" fill="none"/>`,
    dotPath(dots),
    markPath(marks),
  ].join("\n");
}

function spaceShapes(served: Assignment, drawn: readonly NodeId[]): string {
  const dots = drawn.map((node) => {
    const [x = 0, y = 0] = plane.pointOf(node);
    return { node, x: SIDE * x, y: SIDE * y };
  });
  // The space has no edges: a tie that leaves it on one side comes from the other.
  const ties = dots.map(({ node, x, y }) => {
    const [dx = 0, dy = 0] = plane.way(plane.pointOf(node), plane.pointOf(served.get(node) as NodeId));
    return `M${short(x)} ${short(y)}l${short(SIDE * dx)} ${short(SIDE * dy)}`;
  });
  const marks = [...new Set(served.values())].map((node) => {
    const [x = 0, y = 0] = plane.pointOf(node);
    return diamond(SIDE * x, SIDE * y);
  });
  return [
    `<svg width="${SIDE}" height="${SIDE}"><path d="${ties.join("")}" stroke="${FAINT}" stroke-width="0.45" fill="none"/></svg>`,
    `<rect width="${SIDE}" height="${SIDE}" fill="none" stroke="${FAINT}" stroke-width="0.8"/>`,
    dotPath(dots),
    markPath(marks),
  ].join("\n");
}

/** One path of points instead of thousands of elements. */
function dotPath(dots: readonly { readonly x: number; readonly y: number }[]): string {
  const points = dots.map(({ x, y }) => `M${short(x)} ${short(y)}h0`);
  return `<path d="${points.join("")}" stroke="#5b6b7c" stroke-width="1.3" stroke-linecap="round" fill="none"/>`;
}

const markPath = (marks: readonly string[]): string =>
  `<path d="${marks.join("")}" fill="${MARK}" stroke="#ffffff" stroke-width="0.8"/>`;

function diamond(x: number, y: number, size = MARK_PX): string {
  const side = short(size);
  return `M${short(x)} ${short(y - size)}l${side} ${side}l-${side} ${side}l-${side} -${side}z`;
}

const count = new Intl.NumberFormat("en-US");

const short = (x: number): string => String(Math.round(10 * x) / 10);

const ordinal = (count: number): string => `${count}${count === 2 ? "nd" : count === 3 ? "rd" : "th"}`;
