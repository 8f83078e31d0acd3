/** Lines by the thousand, drawn as pixels below the elements: chatter, faintly, and what is too much for elements. */

import type { Ink } from "../../../src/trace/picture/ink.ts";
import type { Message } from "../history/chronicle.ts";
import type { Frame } from "./frame.ts";
import { type Arrow, isInView, placeArrow } from "./layout.ts";

/** The denser, the fainter: a minute of heartbeats is a tint, not a wall. */
const CHATTER = { opacity: 0.32, faintest: 0.07, linesPerPx: 0.3, widthPx: 0.75 };
const CROWD = { opacity: 0.7, widthPx: 1.2 };

export interface Lines {
  readonly chatter: readonly Message[];
  readonly crowd: readonly Arrow[];
  inkOf(arrow: Arrow): Ink;
}

export function drawPixels(canvas: HTMLCanvasElement, lines: Lines, frame: Frame, height: number): void {
  const context = cleared(canvas, frame.width, height);
  if (context === null) return;
  const chatter = lines.chatter.filter((message) => isInView(message, frame));
  const thinning = Math.min(1, Math.sqrt((CHATTER.linesPerPx * frame.width) / Math.max(chatter.length, 1)));
  context.globalAlpha = Math.max(CHATTER.opacity * thinning, CHATTER.faintest);
  context.lineWidth = CHATTER.widthPx;
  context.strokeStyle = colourOf(canvas, "--ink-soft");
  context.stroke(chatterPath(chatter, frame));

  context.globalAlpha = CROWD.opacity;
  context.lineWidth = CROWD.widthPx;
  for (const [ink, path] of pathsByInk(lines)) {
    context.strokeStyle = colourOf(canvas, `--ink-${ink.slot}`);
    context.setLineDash(ink.dash.split(" ").filter(Boolean).map(Number));
    context.stroke(path);
  }
}

/** An empty canvas of that size in CSS pixels, sharp on the screen at hand. */
function cleared(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const context = canvas.getContext("2d");
  const ratio = Math.min(devicePixelRatio, 2);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  context?.scale(ratio, ratio);
  return context;
}

/** What a colour of the page is in the present theme. */
function colourOf(canvas: HTMLCanvasElement, name: string): string {
  canvas.style.color = `var(${name})`;
  return getComputedStyle(canvas).color;
}

function chatterPath(chatter: readonly Message[], frame: Frame): Path2D {
  const path = new Path2D();
  for (const message of chatter) {
    const arrow = placeArrow(message, frame);
    if (arrow !== null) trace(path, arrow);
  }
  return path;
}

function pathsByInk({ crowd, inkOf }: Lines): Map<Ink, Path2D> {
  const paths = new Map<Ink, Path2D>();
  for (const arrow of crowd) {
    const ink = inkOf(arrow);
    const path = paths.get(ink) ?? new Path2D();
    paths.set(ink, path);
    trace(path, arrow);
  }
  return paths;
}

function trace(path: Path2D, { start, end, fate }: Arrow): void {
  path.moveTo(start.x, start.y);
  path.lineTo(end.x, end.y);
  if (fate === "lost") {
    path.moveTo(end.x - 2.5, end.y - 2.5);
    path.lineTo(end.x + 2.5, end.y + 2.5);
    path.moveTo(end.x + 2.5, end.y - 2.5);
    path.lineTo(end.x - 2.5, end.y + 2.5);
  }
}
