/**
 * What comes by the thousand, drawn as pixels below the elements: chatter, faintly, and what is too much for elements.
 * Pixels stay where they are: only what is new since the last time is added, until the frame changes.
 */
import type { Ink } from "../../../src/trace/diagram/ink.ts";
import type { Message } from "../history/chronicle.ts";
import type { Frame } from "./frame.ts";
import { type Arrow, isInView, isSettled, placeArrow } from "./layout.ts";

/** The denser, the fainter: a minute of heartbeats is a tint, not a wall. */
const CHATTER = { opacity: 0.32, faintest: 0.07, linesPerPx: 0.3, widthPx: 0.75 };
const CROWD = { opacity: 0.7, widthPx: 1.2 };
/** What was under way when it was drawn, and has been heard of since, is drawn anew after so long. */
const STALE_MS = 2_000;

export interface Lines {
  readonly chatter: readonly Message[];
  readonly crowd: readonly Arrow[];
  inkOf(arrow: Arrow): Ink;
  /** Changes when other types are shown, or in other colours: then all is drawn anew. */
  readonly manner: string;
}

interface Drawn {
  readonly frame: Frame;
  readonly manner: string;
  readonly at: number;
  readonly ids: Set<string>;
  readonly colours: Map<string, string>;
  readonly chatterOpacity: number;
  hasUnsettled: boolean;
}

export class Pixels {
  #drawn: Drawn | null = null;

  draw(canvas: HTMLCanvasElement, lines: Lines, frame: Frame, height: number): void {
    if (lines.chatter.length + lines.crowd.length === 0) return this.#clear(canvas);
    const context = canvas.getContext("2d");
    if (context === null) return;
    const drawn = this.#standing(lines, frame) ?? this.#begin(context, lines, frame, height);
    this.#drawn = drawn;
    const chatter = lines.chatter.filter(({ id, receivedAt }) => receivedAt !== null && !drawn.ids.has(id));
    this.#drawChatter(context, drawn, chatter);
    this.#drawCrowd(
      context,
      drawn,
      lines.crowd.filter(({ message }) => !drawn.ids.has(message.id)),
      lines,
    );
  }

  #clear(canvas: HTMLCanvasElement): void {
    if (this.#drawn !== null) canvas.width = 0;
    this.#drawn = null;
  }

  /** What has been drawn, as long as it will do. */
  #standing({ manner }: Lines, frame: Frame): Drawn | null {
    const drawn = this.#drawn;
    if (drawn === null || drawn.frame !== frame || drawn.manner !== manner) return null;
    return drawn.hasUnsettled && performance.now() - drawn.at > STALE_MS ? null : drawn;
  }

  /** An empty canvas of that size in CSS pixels, sharp on the screen at hand. */
  #begin(context: CanvasRenderingContext2D, lines: Lines, frame: Frame, height: number): Drawn {
    const { canvas } = context;
    const ratio = Math.min(devicePixelRatio, 2);
    canvas.width = Math.round(frame.width * ratio);
    canvas.height = Math.round(height * ratio);
    context.scale(ratio, ratio);
    const thinning = Math.min(1, Math.sqrt((CHATTER.linesPerPx * frame.width) / Math.max(lines.chatter.length, 1)));
    return {
      frame,
      manner: lines.manner,
      at: performance.now(),
      ids: new Set(),
      colours: new Map(),
      chatterOpacity: Math.max(CHATTER.opacity * thinning, CHATTER.faintest),
      hasUnsettled: false,
    };
  }

  #drawChatter(context: CanvasRenderingContext2D, drawn: Drawn, chatter: readonly Message[]): void {
    const path = new Path2D();
    for (const message of chatter) {
      const arrow = isInView(message, drawn.frame) ? placeArrow(message, drawn.frame) : null;
      if (arrow !== null) this.#add(path, arrow, drawn);
    }
    context.globalAlpha = drawn.chatterOpacity;
    context.lineWidth = CHATTER.widthPx;
    context.strokeStyle = colourOf(context.canvas, "--ink-soft", drawn);
    context.stroke(path);
  }

  #drawCrowd(context: CanvasRenderingContext2D, drawn: Drawn, crowd: readonly Arrow[], { inkOf }: Lines): void {
    const paths = new Map<Ink, Path2D>();
    for (const arrow of crowd) {
      const ink = inkOf(arrow);
      const path = paths.get(ink) ?? new Path2D();
      paths.set(ink, path);
      this.#add(path, arrow, drawn);
    }
    context.globalAlpha = CROWD.opacity;
    context.lineWidth = CROWD.widthPx;
    for (const [ink, path] of paths) {
      context.strokeStyle = colourOf(context.canvas, `--ink-${ink.slot}`, drawn);
      context.stroke(path);
    }
  }

  #add(path: Path2D, arrow: Arrow, drawn: Drawn): void {
    drawn.ids.add(arrow.message.id);
    drawn.hasUnsettled ||= !isSettled(arrow);
    trace(path, arrow);
  }
}

/** What a colour of the page is in the present theme. */
function colourOf(canvas: HTMLCanvasElement, name: string, { colours }: Drawn): string {
  let colour = colours.get(name);
  if (colour === undefined) {
    canvas.style.color = `var(${name})`;
    colour = getComputedStyle(canvas).color;
    colours.set(name, colour);
  }
  return colour;
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
