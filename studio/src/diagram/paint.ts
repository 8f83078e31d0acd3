/** Draws a picture on a surface: the ground, lasting states, messages, marks and text, in that order. */
import type { Ink } from "../../../src/trace/diagram/ink.ts";
import { textWidth } from "../../../src/trace/picture/boxes.ts";
import { type MarkKind, markPaths } from "../../../src/trace/picture/marks.ts";
import { xOf } from "./frame.ts";
import { LETTER_PX, type Letter, type LetterStyle } from "./lettering.ts";
import { type Arrow, AXIS_PX, type LifeLine, type Picture } from "./picture.ts";
import type { FaultKind, PlacedSpan } from "./spans.ts";
import { type PlacedState, STATE_COLOURS, STATE_PX } from "./states.ts";
import type { Lettering, Manner, Surface } from "./surface.ts";
import type { Theme } from "./theme.ts";
import { TRACK_PX } from "./tracks.ts";

export interface Paint {
  readonly theme: Theme;
  inkOf(name: string): Ink;
  /** The x coordinate of the present. Everything after it has not happened yet. */
  readonly until?: number;
  /** The opacity of the veil. At 1, everything after `until` is hidden. Default: `VEIL`. */
  readonly veil?: number;
}

export function paint(surface: Surface, picture: Picture, how: Paint): void {
  paintThings(surface, picture, how);
  const { theme, until = Number.POSITIVE_INFINITY, veil = VEIL } = how;
  if (until < picture.frame.width) {
    const left = Math.max(0, until);
    surface.box(left, 0, picture.frame.width - left, picture.height, { fill: theme("--sheet"), opacity: veil });
  }
  paintWords(surface, picture, how);
}

export const VEIL = 0.84;

/** Paints everything below the veil. */
export function paintThings(
  surface: Surface,
  picture: Picture,
  { theme, inkOf, until = Number.POSITIVE_INFINITY, veil = VEIL }: Paint,
): void {
  paintGround(surface, picture, theme, veil < 1 ? Number.POSITIVE_INFINITY : until);
  for (const state of picture.states) paintState(surface, state, theme);
  paintTracks(surface, picture, theme);
  for (const line of picture.lines) paintLife(surface, line, theme);
  paintArrows(surface, picture, inkOf, theme);
  for (const mark of picture.marks) paintMark(surface, mark.shape, mark.x, mark.y, theme);
}

/** Paints the labels of past items above the veil. If the veil is opaque, arrows that end later have no label. */
export function paintWords(
  surface: Surface,
  { letters }: Pick<Picture, "letters">,
  { theme, until = Number.POSITIVE_INFINITY, veil = VEIL }: Omit<Paint, "inkOf">,
): void {
  for (const letter of letters)
    if (letter.of <= until && (veil < 1 || letter.x <= until)) paintLetter(surface, letter, theme);
}

const TICK_PX = 12;

/**
 * Paints the rows and the axis.
 * @param hiddenFrom the x coordinate beyond which everything is hidden; times that extend beyond it are omitted
 */
function paintGround(
  surface: Surface,
  { frame, axis, height, spans, breaks }: Picture,
  theme: Theme,
  hiddenFrom: number,
): void {
  const [top, bottom] = [frame.top - 4, height - AXIS_PX];
  for (const { at, text } of axis.ticks) {
    const x = Math.round(xOf(at, frame)) + 0.5;
    surface.lines([x, top, x, bottom], { stroke: { colour: theme("--rule"), width: 1 }, opacity: 0.7 });
    const half = textWidth(text, TICK_PX) / 2;
    const isCut = (frame.still && (x < half || x > frame.width - half)) || x + half > hiddenFrom;
    if (!isCut)
      surface.words(text, x, bottom + 19, {
        colour: theme("--ink-soft"),
        px: TICK_PX,
        family: "sans",
        anchor: "middle",
      });
  }
  for (const x of breaks) {
    surface.box(x - 5, top, 10, bottom - top, { fill: theme("--rule"), opacity: 0.3 });
    surface.shape("M-5 5L1 -5M1 5L7 -5", { stroke: { colour: theme("--ink-soft"), width: 1.3 }, x, y: bottom });
  }
  for (const span of spans) paintSpan(surface, span, bottom, theme);
}

/**
 * The styles of faults. The upper edges differ as well: a solid line for cut links, dashes for loss, dots for delay.
 */
const FAULTS: Readonly<
  Record<FaultKind, { readonly colour: string; readonly opacity: number; readonly dash?: string }>
> = {
  cut: { colour: "--danger", opacity: 0.06 },
  loss: { colour: "--danger", opacity: 0.03, dash: "9 4" },
  delay: { colour: "--gold", opacity: 0.05, dash: "2 3" },
};

function paintSpan(surface: Surface, { kind, x1, x2, y, text }: PlacedSpan, bottom: number, theme: Theme): void {
  const { colour, opacity, dash } = FAULTS[kind];
  const width = Math.max(x2 - x1, 1);
  surface.box(x1, y, width, bottom - y, { fill: theme(colour), opacity });
  surface.lines([x1, y, x1 + width, y], { stroke: { colour: theme(colour), width: 2.4, ...(dash && { dash }) } });
  if (text !== "")
    surface.words(text, x1 + 5, y + 13, { colour: theme(colour), px: 12.5, family: "serif", italic: true });
}

/** The opacity of each kind of state. */
const STATE_OPACITIES: Readonly<Record<PlacedState["kind"], number>> = {
  inside: 0.62,
  waiting: 0.34,
  leading: 0.34,
  electing: 0.22,
  preparing: 0.22,
  proposing: 0.34,
  view: 0.16,
  changing: 0.34,
};

/** States without a lower edge. */
const EDGELESS: ReadonlySet<PlacedState["kind"]> = new Set(["electing", "preparing", "view"]);

function paintState(
  surface: Surface,
  { kind, x1, x2, y }: Pick<PlacedState, "kind" | "x1" | "x2" | "y">,
  theme: Theme,
): void {
  const colour = STATE_COLOURS[kind];
  const [top, width] = [y - STATE_PX / 2, Math.max(x2 - x1, 2)];
  surface.box(x1, top, width, STATE_PX, { fill: theme(colour), opacity: STATE_OPACITIES[kind] });
  // Edges differ as well as colors: inside has a closed edge, and waiting is open at the top.
  const edge = { fill: theme(colour) };
  if (kind === "view") surface.box(x1, top, 2, STATE_PX, edge);
  if (!EDGELESS.has(kind)) surface.box(x1, top + STATE_PX - 1.4, width, 1.4, edge);
  if (kind === "inside") {
    surface.box(x1, top, width, 1.4, edge);
    surface.box(x1, top, 1.4, STATE_PX, edge);
    surface.box(x1 + width - 1.4, top, 1.4, STATE_PX, edge);
  }
}

function paintTracks(surface: Surface, { tracks }: Picture, theme: Theme): void {
  const edge = { colour: theme("--held-edge"), width: 0.9 };
  for (const { x1, x2, y, lifeY, ends, text, isSurplus } of tracks) {
    for (const x of ends) surface.lines([x, lifeY, x, y + TRACK_PX / 2], { stroke: edge });
    const stroke = isSurplus ? { ...edge, dash: "3 2" } : edge;
    surface.box(x1, y, Math.max(x2 - x1, 1), TRACK_PX, { fill: theme("--held"), stroke });
    if (text !== "") surface.words(text, x1 + 3, y + TRACK_PX - 1, { colour: theme("--ink"), px: 8.5, family: "sans" });
  }
}

const PAUSED_PX = 11;
const HATCH_PX = 6;

function paintLife(surface: Surface, { x1, x2, y, condition, leads }: LifeLine, theme: Theme): void {
  if (x2 <= x1) return;
  if (condition === "paused") {
    const top = y - PAUSED_PX / 2;
    const stroke = { colour: theme("--rule-strong"), width: 1 };
    surface.box(x1, top, x2 - x1, PAUSED_PX, { fill: theme("--sheet"), stroke });
    const strokes: number[] = [];
    for (let x = x1 + HATCH_PX; x < x2; x += HATCH_PX) strokes.push(x - HATCH_PX, top + PAUSED_PX, x, top);
    if (strokes.length > 0) surface.lines(strokes, { stroke: { colour: theme("--ink-soft"), width: 1.6 } });
    return;
  }
  if (condition === "gone") {
    surface.lines([x1, y, x2, y], { stroke: { colour: theme("--rule-strong"), width: 1, dash: "1 7" } });
    return;
  }
  surface.box(x1, y - (leads ? 2.5 : 0.65), x2 - x1, leads ? 5 : 1.3, { fill: theme("--ink") });
}

function paintArrows(surface: Surface, picture: Picture, inkOf: Paint["inkOf"], theme: Theme): void {
  const { arrows, crowd, clocks } = picture;
  if (crowd !== null) return paintCrowd(surface, picture, inkOf, theme);
  const isCasing = arrows.length < 200 && clocks.length === 0;
  for (const arrow of arrows) paintArrow(surface, arrow, inkOf(arrow.message.name.full), theme, isCasing);
}

/**
 * Paints an arrow.
 * @param isCased whether the arrow has an outline in the background color, so that crossing arrows can be followed
 */
function paintArrow(surface: Surface, arrow: Arrow, ink: Ink, theme: Theme, isCased = true): void {
  const { start, end, fate } = arrow;
  const colour = theme(`--ink-${ink.slot}`);
  const shaft = [round(start.x), round(start.y), round(end.x), round(end.y)];
  const opacity = fate === "flying" || fate === "arriving" ? 0.65 : 1;
  if (isCased) surface.lines(shaft, { stroke: { colour: theme("--sheet"), width: 4 } });
  surface.lines(shaft, { stroke: { colour, width: 1.6, dash: ink.dash }, opacity });
  const radians = Math.atan2(end.y - start.y, end.x - start.x);
  const place = { x: end.x, y: end.y, radians };
  if (fate === "lost")
    surface.shape("M-5.5 -5.5L5.5 5.5M5.5 -5.5L-5.5 5.5", { stroke: { colour, width: 2.6 }, x: end.x, y: end.y });
  else if (fate === "flying")
    surface.shape("M4 -1.3h2.6v2.6h-2.6ZM9 -1.3h2.6v2.6h-2.6ZM14 -1.3h2.6v2.6h-2.6Z", { fill: colour, ...place });
  else if (ink.head.open)
    surface.shape(ink.head.path, { fill: theme("--sheet"), stroke: { colour, width: 1.7 }, ...place });
  else surface.shape(ink.head.path, { fill: colour, ...place });
}

/** Paints samples that represent many messages, fainter in dense regions. */
function paintCrowd(surface: Surface, { arrows, crowd }: Picture, inkOf: Paint["inkOf"], theme: Theme): void {
  const byInk = new Map<number, number[]>();
  for (const { start, end, message } of arrows) {
    const { slot } = inkOf(message.name.full);
    const ends = byInk.get(slot) ?? [];
    ends.push(round(start.x), round(start.y), round(end.x), round(end.y));
    byInk.set(slot, ends);
  }
  const opacity = Math.max(0.32, Math.min(0.7, 0.9 - Math.log10((crowd?.count ?? 1) / arrows.length) / 4));
  for (const [slot, ends] of byInk)
    surface.lines(ends, { stroke: { colour: theme(`--ink-${slot}`), width: 1.1 }, opacity });
}

const MARK_LOOKS: Readonly<Record<MarkKind, (theme: Theme) => Manner>> = {
  start: (theme) => ({ stroke: { colour: theme("--ink"), width: 2.4 } }),
  crash: (theme) => ({ stroke: { colour: theme("--danger"), width: 3.2 } }),
  timeout: (theme) => ({ fill: theme("--sheet"), stroke: { colour: theme("--ink"), width: 1.5 } }),
  command: (theme) => ({ fill: theme("--accent"), stroke: { colour: theme("--accent"), width: 1 } }),
  event: (theme) => ({ fill: theme("--ink"), stroke: { colour: theme("--ink"), width: 1.5 } }),
  delivery: (theme) => ({ stroke: { colour: theme("--delivered"), width: 2.3 } }),
  choice: (theme) => ({ fill: theme("--sheet"), stroke: { colour: theme("--ink"), width: 1.5 } }),
  fault: (theme) => ({ fill: theme("--crown"), stroke: { colour: theme("--ink"), width: 1 } }),
  gap: (theme) => ({ stroke: { colour: theme("--ink-soft"), width: 1.5 } }),
};

function paintMark(surface: Surface, shape: MarkKind, x: number, y: number, theme: Theme): void {
  surface.shape(markPaths[shape], { ...MARK_LOOKS[shape](theme), x, y });
}

const STYLES: Readonly<Record<LetterStyle, Partial<Lettering>>> = {
  plain: {},
  bold: { weight: 600 },
  role: { family: "serif", italic: true },
  arrow: {},
  clock: {},
  state: { weight: 600 },
};

function paintLetter(surface: Surface, { text, x, y, radians, style, colour }: Letter, theme: Theme): void {
  const look = {
    colour: theme(colour),
    px: LETTER_PX[style],
    family: "sans",
    halo: theme("--sheet"),
    ...STYLES[style],
  } as const;
  // The names of messages are centered. All other text begins at its position.
  if (style === "arrow") {
    const [down, across] = [Math.cos(radians) * 3.6, -Math.sin(radians) * 3.6];
    surface.words(text, x + across, y + down, { ...look, anchor: "middle", radians });
  } else surface.words(text, x, y, look);
}

const round = (value: number): number => Math.round(value * 10) / 10;
