/**
 * Draws one scenario under several orders of delivery, side by side in one picture: a panel for each, with a common
 * time axis.
 */
import type { NodeId } from "../../src/core/protocol.ts";
import type { Scenario } from "../../src/experiment/scenario/index.ts";
import { textWidth } from "../../src/trace/picture/boxes.ts";
import { darkStyle } from "../../src/trace/picture/dark.ts";
import { markPaths } from "../../src/trace/picture/marks.ts";
import { escaped, round } from "../../src/trace/picture/svg-shapes.ts";
import { type Delivery, type Inversion, type Order, type OrderRun, orderRuns } from "./order-runs.ts";

const COLUMNS = 2;
const MARGIN = 18;
const GAP = 26;
const TITLE_PX = 17;
const NODE_WIDTH = 52;
const LANES_TOP = 54;
const LANE_PITCH = 46;
const AXIS_PX = 34;
const FIRST_PX = 14;
const PX_PER_MS = 0.6;
/** The minimum distance between two moments. */
const LEAST_PX = 8;
/** The shortest silence that is cut out of the axis. */
const SILENCE_MS = 55;
const CUT_PX = 30;
/** The minimum distance between two deliveries at one node. */
const DELIVERY_PX = 29;
const BAR_PITCH = 5;
const ORDERS: readonly Order[] = ["FIFO", "causal", "total"];
/** The color of a message, by the first letter of its name. */
const COLOURS = ["#1f5fa8", "#a8431a", "#7a3a9c", "#1d6d78"];

interface Axis {
  /** The position of each time. */
  readonly moments: ReadonlyMap<number, number>;
  /** The positions where time is left out. */
  readonly cuts: readonly number[];
  readonly width: number;
}

const xOf = ({ moments }: Axis, at: number): number => moments.get(at) ?? 0;

interface Stage {
  readonly axis: Axis;
  /** The right edge of all panels. */
  readonly right: number;
  readonly nodes: readonly NodeId[];
  nameOf(id: string): string;
  colourOf(id: string): string;
}

export function drawOrderPanels(scenario: Scenario): string {
  const runs = orderRuns(scenario);
  const axes = runs.map(axisOf);
  const right = Math.max(...axes.map(({ width }) => width));
  const nodes = [...new Set(runs.flatMap(({ deliveries }) => deliveries.map(({ node }) => node)))].sort(
    (a, b) => a - b,
  );
  const nameOf = (id: string): string => scenario.labels[id] ?? id;
  const letters = [...new Set(runs.flatMap(({ sent }) => sent.map(({ id }) => nameOf(id).charAt(0))))].sort();
  const colourOf = (id: string): string => COLOURS[letters.indexOf(nameOf(id).charAt(0)) % COLOURS.length] ?? "#1c2733";
  const panel = { width: NODE_WIDTH + right, height: LANES_TOP + nodes.length * LANE_PITCH + AXIS_PX };
  const rows = Math.ceil(runs.length / COLUMNS);
  const width = 2 * MARGIN + COLUMNS * panel.width + (COLUMNS - 1) * GAP;
  const legendY = MARGIN + TITLE_PX + 22 + rows * (panel.height + 14);
  const panels = runs.map((run, index) => {
    const x = MARGIN + (index % COLUMNS) * (panel.width + GAP);
    const y = MARGIN + TITLE_PX + 14 + Math.floor(index / COLUMNS) * (panel.height + 14);
    return `<g transform="translate(${round(x)} ${round(y)})">\n${panelShape(run, { axis: axes[index] as Axis, right, nodes, nameOf, colourOf })}\n</g>`;
  });
  return framed(scenario, Math.ceil(width), Math.ceil(legendY + 24), [...panels, legend(legendY)]);
}

/**
 * Creates the axis. Later times are never left of earlier ones, and deliveries have space for their names. Otherwise
 * distances are true to scale, except for long silences.
 */
function axisOf({ sent, deliveries }: OrderRun): Axis {
  const times = [...sent.map(({ at }) => at), ...deliveries.flatMap(({ at, receivedAt }) => [at, receivedAt])];
  const moments = new Map<number, number>();
  const cuts: number[] = [];
  const free = new Map<NodeId, number>();
  let last: { at: number; x: number } | null = null;
  for (const at of [...new Set(times)].sort((a, b) => a - b)) {
    const gap = last === null ? 0 : at - last.at;
    const wish = last === null ? FIRST_PX : last.x + Math.max(LEAST_PX, gap > SILENCE_MS ? CUT_PX : gap * PX_PER_MS);
    const now = deliveries.filter((each) => each.at === at);
    const inTheWay = gap > SILENCE_MS ? [...free.values()] : now.map(({ node }) => free.get(node) ?? 0);
    const x = Math.max(wish, ...inTheWay);
    if (gap > SILENCE_MS) cuts.push(x - CUT_PX / 2);
    for (const { node } of now) free.set(node, Math.max(x, free.get(node) ?? 0) + DELIVERY_PX);
    moments.set(at, x);
    last = { at, x };
  }
  const width = Math.max(last?.x ?? 0, ...free.values()) + 8;
  return { moments, cuts, width };
}

const laneY = (stage: Stage, node: NodeId): number => LANES_TOP + (stage.nodes.indexOf(node) + 0.5) * LANE_PITCH;

function panelShape(run: OrderRun, stage: Stage): string {
  const { axis, nodes, right } = stage;
  const baseY = LANES_TOP + nodes.length * LANE_PITCH;
  return [
    heading(run, stage),
    `<g transform="translate(${NODE_WIDTH} 0)">`,
    ...run.deliveries.map((delivery) => wayShape(delivery, run, stage)),
    ...nodes.flatMap((node) => barShapes(run, node, stage)),
    ...nodes.map((node) => {
      const y = laneY(stage, node);
      return `<path class="under" d="M0 ${y}H${round(right)}"/><path class="life" d="M0 ${y}H${round(right)}"/><text class="node" x="-8" y="${y + 4}">node ${node}</text>`;
    }),
    ...run.sent.map(({ node, at }) => dot(xOf(axis, at), laneY(stage, node))),
    ...run.deliveries.map(({ node, receivedAt }) => dot(xOf(axis, receivedAt), laneY(stage, node))),
    ...nodes.flatMap((node) => deliveryShapes(run, node, stage)),
    ...axisShapes(axis, right, baseY),
    "</g>",
  ]
    .filter((part) => part !== "")
    .join("\n");
}

function heading({ protocol, kept, wrong, different }: OrderRun, { nameOf }: Stage): string {
  let x = textWidth(protocol, 14) + 22;
  const badges = ORDERS.map((order) => {
    const words = `${kept[order] ? "✓" : "✗"} ${order}`;
    const badge = `<text class="${kept[order] ? "keeps" : "breaks"}" x="${round(x)}" y="14">${words}</text>`;
    x += textWidth(words, 12) + 16;
    return badge;
  });
  const line = (found: readonly Inversion[], y: number, words: (list: string) => string): string =>
    found.length === 0
      ? ""
      : `<text class="note" x="0" y="${y}">${escaped(capitalised(words(listed(found, nameOf))))}</text>`;
  return [
    `<text class="protocol" x="0" y="14">${escaped(protocol)}</text>${badges.join("")}`,
    line(wrong, 32, (list) => `${list}.`),
    line(different, wrong.length === 0 ? 32 : 47, (list) => `Unlike node 0, ${list}.`),
  ]
    .filter((part) => part !== "")
    .join("\n");
}

const capitalised = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

/**
 * Returns text such as "node 3 delivers F2 before F1, C2 before C1". Nodes with the same deviations share their text.
 */
function listed(found: readonly Inversion[], nameOf: (id: string) => string): string {
  const byNode = new Map<NodeId, string[]>();
  for (const { node, first, second } of found)
    byNode.set(node, [...(byNode.get(node) ?? []), `${nameOf(first)} before ${nameOf(second)}`]);
  const byWords = new Map<string, NodeId[]>();
  for (const [node, words] of byNode) byWords.set(words.join(", "), [...(byWords.get(words.join(", ")) ?? []), node]);
  return [...byWords]
    .map(([words, nodes]) => {
      const who =
        nodes.length === 1
          ? `node ${nodes[0]} delivers`
          : `nodes ${nodes.slice(0, -1).join(", ")} and ${nodes.at(-1)} deliver`;
      return `${who} ${words}`;
    })
    .join("; ");
}

/** Draws the line from the sending to the reception. */
function wayShape({ id, node, receivedAt }: Delivery, { sent }: OrderRun, stage: Stage): string {
  const source = sent.find((each) => each.id === id);
  if (source === undefined || source.node === node) return "";
  const [x1, y1] = [xOf(stage.axis, source.at), laneY(stage, source.node)];
  const [x2, y2] = [xOf(stage.axis, receivedAt), laneY(stage, node)];
  return `<path class="way" stroke="${stage.colourOf(id)}" d="M${round(x1)} ${y1}L${round(x2)} ${y2}"/>`;
}

/** Draws the bars from the reception to the delivery, one below the other. */
function barShapes({ deliveries }: OrderRun, node: NodeId, { axis, colourOf, ...stage }: Stage): string[] {
  const y = laneY({ axis, colourOf, ...stage }, node);
  const rows: number[] = [];
  return deliveries
    .filter((each) => each.node === node && each.at > each.receivedAt)
    .toSorted((a, b) => a.receivedAt - b.receivedAt)
    .map(({ id, receivedAt, at }) => {
      const free = rows.findIndex((until) => until <= receivedAt);
      const row = free === -1 ? rows.length : free;
      rows[row] = at;
      const [x1, x2] = [xOf(axis, receivedAt), xOf(axis, at)];
      return `<rect class="held" stroke="${colourOf(id)}" x="${round(x1)}" y="${y + 3 + row * BAR_PITCH}" width="${round(x2 - x1)}" height="3.6" rx="1"/>`;
    });
}

const dot = (x: number, y: number): string => `<circle class="dot" cx="${round(x)}" cy="${y}" r="2"/>`;

function deliveryShapes(run: OrderRun, node: NodeId, stage: Stage): string[] {
  const y = laneY(stage, node);
  const involves = (found: readonly Inversion[], id: string): boolean =>
    found.some((each) => each.node === node && (each.first === id || each.second === id));
  let free = Number.NEGATIVE_INFINITY;
  return run.deliveries
    .filter((each) => each.node === node)
    .map(({ id, at }) => {
      const x = Math.max(xOf(stage.axis, at), free);
      free = x + DELIVERY_PX;
      const fault = involves(run.wrong, id) ? "wrong" : involves(run.different, id) ? "different" : "";
      return deliveryShape(stage.nameOf(id), x, y, fault);
    });
}

function deliveryShape(name: string, x: number, y: number, fault: string): string {
  const pill =
    fault === ""
      ? ""
      : `<rect class="${fault}" x="5.5" y="-17.5" width="${round(textWidth(name, 11) + 5)}" height="14" rx="3.5"/>`;
  return `<g transform="translate(${round(x)} ${y})">${pill}<path class="delivery" d="${markPaths.delivery}"/><text class="id" x="7" y="-6.5">${escaped(name)}</text></g>`;
}

function axisShapes({ moments, cuts }: Axis, right: number, y: number): string[] {
  let free = Number.NEGATIVE_INFINITY;
  const ticks = [...moments].map(([at, x]) => {
    const half = textWidth(String(at), 10) / 2;
    const hasRoom = x - half >= free;
    if (hasRoom) free = x + half + 6;
    const tick = `<path class="axis" d="M${round(x)} ${y}v${hasRoom ? 4 : 2.5}"/>`;
    return hasRoom ? `${tick}<text class="tick" x="${round(x)}" y="${y + 15}">${at}</text>` : tick;
  });
  return [
    `<path class="axis" d="M0 ${y}H${round(right)}"/>`,
    ...ticks,
    ...cuts.map(
      (x) =>
        `<path class="blank" d="M${round(x - 4)} ${y}h8"/><path class="axis" d="M${round(x - 6)} ${y + 5}l5 -10M${round(x)} ${y + 5}l5 -10"/>`,
    ),
    `<text class="unit" x="-8" y="${y + 15}">ms</text>`,
  ];
}

function legend(y: number): string {
  const items: readonly (readonly [string, string])[] = [
    [`<path class="way" stroke="#1c2733" d="M0 -8L20 0"/>${dot(20, 0)}`, "sent, received"],
    [`<rect class="held" stroke="#1c2733" x="2" y="-2" width="24" height="3.6" rx="1"/>`, "held back"],
    [`<g transform="translate(14 6)"><path class="delivery" d="${markPaths.delivery}"/></g>`, "delivered"],
    [`<g transform="translate(2 10)">${deliveryShape("F1", 0, 0, "wrong")}</g>`, "not in FIFO or causal order"],
    [
      `<g transform="translate(2 10)">${deliveryShape("T1", 0, 0, "different")}</g>`,
      "neither happened before the other; not as at node 0",
    ],
  ];
  let x = MARGIN;
  const shapes = items.map(([sample, words]) => {
    const shape = `<g transform="translate(${round(x)} ${y})">${sample}<text class="key" x="34" y="4">${escaped(words)}</text></g>`;
    x += 34 + textWidth(words, 11) + 24;
    return shape;
  });
  return shapes.join("\n");
}

function framed(scenario: Scenario, width: number, height: number, parts: readonly string[]): string {
  const drawn = [
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text class="title" x="${MARGIN}" y="${MARGIN + TITLE_PX - 4}">${escaped(scenario.name)}</text>`,
    ...parts,
  ].join("\n");
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" id="orders" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(scenario.name)}</title>`,
    `<desc>${escaped(scenario.about.trim())}</desc>`,
    `<style>${style}\n${darkStyle(style, drawn, "#orders ")}</style>`,
    drawn,
    "</svg>",
  ].join("\n")}\n`;
}

const rules: Readonly<Record<string, string>> = {
  text: "font-family: 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif; fill: #1c2733",
  ".title": "font-size: 17px; font-weight: 600",
  ".protocol": "font-size: 14px; font-weight: 600",
  ".keeps": "font-size: 12px; fill: #0b5427",
  ".breaks": "font-size: 12px; font-weight: 600; fill: #b3261e",
  ".note": "font-size: 11px; fill: #46525f",
  ".node": "font-size: 11px; font-weight: 600; text-anchor: end",
  ".key": "font-size: 11px",
  ".tick": "font-size: 10px; text-anchor: middle; fill: #46525f",
  ".unit": "font-size: 10px; text-anchor: end; fill: #46525f",
  ".id":
    "font-size: 11px; font-weight: 600; fill: #0b5427; paint-order: stroke; stroke: #ffffff; stroke-width: 2px; stroke-linejoin: round",
  ".way": "fill: none; stroke-width: 1.1",
  ".under": "stroke: #ffffff; stroke-width: 4",
  ".life": "stroke: #1c2733; stroke-width: 1.2",
  ".dot": "fill: #1c2733",
  ".held": "fill: #fae6b1; stroke-width: 0.9",
  ".delivery": "fill: none; stroke: #0f6b33; stroke-width: 2.2; stroke-linecap: round; stroke-linejoin: round",
  ".wrong": "fill: #fbdcd8; stroke: #b3261e; stroke-width: 1.4",
  ".different": "fill: #efe6f5; stroke: #7a3a9c; stroke-width: 1.2; stroke-dasharray: 3 2",
  ".axis": "stroke: #7a8794; stroke-width: 1; fill: none",
  ".blank": "stroke: #ffffff; stroke-width: 3",
};

const style = Object.entries(rules)
  .map(([selector, rule]) => `#orders ${selector} { ${rule} }`)
  .join("\n");
