/**
 * The targets that a drawing can be painted on: a canvas for the screen, and SVG for files. Both accept the same path
 * data.
 */

export interface Stroke {
  readonly colour: string;
  readonly width: number;
  /** An SVG dash array. Empty for a solid line. */
  readonly dash?: string;
}

/** The fill, stroke, position and rotation of a shape. */
export interface Manner {
  readonly fill?: string;
  readonly stroke?: Stroke;
  readonly opacity?: number;
  readonly x?: number;
  readonly y?: number;
  readonly radians?: number;
}

export interface Lettering {
  readonly colour: string;
  readonly px: number;
  readonly family: "sans" | "serif";
  readonly weight?: 400 | 600;
  readonly italic?: boolean;
  readonly anchor?: "start" | "middle" | "end";
  readonly radians?: number;
  readonly opacity?: number;
  /** The color of an outline that separates the letters from the drawing below them. */
  readonly halo?: string;
}

export interface Surface {
  /** Draws a shape. @param path SVG path data relative to the origin, which is placed according to `manner` */
  shape(path: string, manner: Manner): void;
  /** Draws lines. @param ends for each line, the x and y of its start and the x and y of its end */
  lines(ends: readonly number[], manner: Pick<Manner, "stroke" | "opacity">): void;
  box(x: number, y: number, width: number, height: number, manner: Manner): void;
  /** Draws text. `y` is its baseline. */
  words(text: string, x: number, y: number, lettering: Lettering): void;
}

const FONTS = {
  sans: "-apple-system, BlinkMacSystemFont, 'Segoe UI', 'Helvetica Neue', 'Noto Sans', 'Liberation Sans', Arial, sans-serif",
  serif: "'Iowan Old Style', Palatino, 'Book Antiqua', 'Noto Serif', Georgia, 'Liberation Serif', serif",
} as const;

const fontOf = ({ px, family, weight = 400, italic = false }: Lettering): string =>
  `${italic ? "italic " : ""}${weight} ${px}px ${FONTS[family]}`;

const HALO_PX = 3.5;
/** A cache of paths, because shapes such as arrowheads are used often. */
const paths = new Map<string, Path2D>();
const MAX_PATHS = 500;

export class ScreenSurface implements Surface {
  readonly #context: CanvasRenderingContext2D;
  readonly #ratio: number;
  #font = "";

  constructor(context: CanvasRenderingContext2D, ratio: number) {
    this.#context = context;
    this.#ratio = ratio;
  }

  shape(path: string, manner: Manner): void {
    const context = this.#context;
    this.#stand(manner);
    context.globalAlpha = manner.opacity ?? 1;
    const shape = pathOf(path, manner.x !== undefined);
    if (manner.fill !== undefined) {
      context.fillStyle = manner.fill;
      context.fill(shape);
    }
    if (manner.stroke === undefined) return;
    this.#ready(manner.stroke);
    context.stroke(shape);
  }

  lines(ends: readonly number[], { stroke, opacity = 1 }: Pick<Manner, "stroke" | "opacity">): void {
    if (stroke === undefined) return;
    const context = this.#context;
    this.#stand({});
    context.globalAlpha = opacity;
    context.beginPath();
    for (let at = 0; at < ends.length; at += 4) {
      context.moveTo(ends[at] as number, ends[at + 1] as number);
      context.lineTo(ends[at + 2] as number, ends[at + 3] as number);
    }
    this.#ready(stroke);
    context.stroke();
  }

  box(x: number, y: number, width: number, height: number, { fill, stroke, opacity = 1 }: Manner): void {
    const context = this.#context;
    this.#stand({});
    context.globalAlpha = opacity;
    if (fill !== undefined) {
      context.fillStyle = fill;
      context.fillRect(x, y, width, height);
    }
    if (stroke === undefined) return;
    this.#ready(stroke);
    context.strokeRect(x, y, width, height);
  }

  words(text: string, x: number, y: number, lettering: Lettering): void {
    const context = this.#context;
    this.#stand({ x, y, radians: lettering.radians ?? 0 });
    context.globalAlpha = lettering.opacity ?? 1;
    this.#write(fontOf(lettering));
    context.textAlign = lettering.anchor === "middle" ? "center" : (lettering.anchor ?? "start");
    if (lettering.halo !== undefined) {
      context.strokeStyle = lettering.halo;
      context.lineWidth = HALO_PX;
      context.lineJoin = "round";
      context.setLineDash([]);
      context.strokeText(text, 0, 0);
    }
    context.fillStyle = lettering.colour;
    context.fillText(text, 0, 0);
  }

  /** Sets the font only if it differs, because setting a font is slow even if it does not change. */
  #write(font: string): void {
    if (font === this.#font) return;
    this.#context.font = font;
    this.#font = font;
  }

  #ready({ colour, width, dash = "" }: Stroke): void {
    const context = this.#context;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.lineJoin = "round";
    context.setLineDash(dash === "" ? [] : dash.split(" ").map(Number));
  }

  #stand({ x = 0, y = 0, radians = 0 }: Pick<Manner, "x" | "y" | "radians">): void {
    const [cos, sin] = [Math.cos(radians) * this.#ratio, Math.sin(radians) * this.#ratio];
    this.#context.setTransform(cos, sin, -sin, cos, x * this.#ratio, y * this.#ratio);
  }
}

/**
 * Returns the path for path data. @param comesAgain whether to cache the path because the shape is drawn around the
 * origin
 */
function pathOf(words: string, comesAgain: boolean): Path2D {
  const known = paths.get(words);
  if (known !== undefined) return known;
  const path = new Path2D(words);
  if (comesAgain && paths.size < MAX_PATHS) paths.set(words, path);
  return path;
}

export class SvgSurface implements Surface {
  readonly #elements: string[] = [];

  shape(path: string, manner: Manner): void {
    this.#elements.push(`<path d="${path}"${attributes(manner)}/>`);
  }

  lines(ends: readonly number[], manner: Pick<Manner, "stroke" | "opacity">): void {
    const words: string[] = [];
    for (let at = 0; at < ends.length; at += 4)
      words.push(`M${ends[at]} ${ends[at + 1]}L${ends[at + 2]} ${ends[at + 3]}`);
    this.shape(words.join(""), manner);
  }

  box(x: number, y: number, width: number, height: number, manner: Manner): void {
    const place = `x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"`;
    this.#elements.push(`<rect ${place}${attributes(manner)}/>`);
  }

  words(text: string, x: number, y: number, lettering: Lettering): void {
    const { colour, anchor = "start", radians = 0, opacity = 1, halo } = lettering;
    const look = [
      `transform="translate(${short(x)} ${short(y)})${radians === 0 ? "" : ` rotate(${short((radians * 180) / Math.PI)})`}"`,
      `style="font: ${fontOf(lettering)}"`,
      `text-anchor="${anchor}" fill="${colour}"`,
      ...(opacity === 1 ? [] : [`opacity="${opacity}"`]),
      ...(halo === undefined
        ? []
        : [`paint-order="stroke" stroke="${halo}" stroke-width="${HALO_PX}" stroke-linejoin="round"`]),
    ];
    this.#elements.push(`<text ${look.join(" ")}>${escaped(text)}</text>`);
  }

  /** Calls `draw` with a clipping area, so that nothing is drawn outside of it. */
  inside(
    { x, y, width, height, opacity }: { x: number; y: number; width: number; height: number; opacity: number },
    draw: () => void,
  ): void {
    const size = `x="${short(x)}" y="${short(y)}" width="${width}" height="${height}"`;
    this.#elements.push(`<g${opacity === 1 ? "" : ` opacity="${opacity}"`}><svg ${size} overflow="hidden">`);
    draw();
    this.#elements.push("</svg></g>");
  }

  /** Returns a complete SVG document with this size and background color. */
  document(width: number, height: number, ground: string, title: string): string {
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
      `<title>${escaped(title)}</title>`,
      `<rect width="${width}" height="${height}" fill="${ground}"/>`,
      ...this.#elements,
      "</svg>\n",
    ].join("\n");
  }
}

function attributes({ fill = "none", stroke, opacity = 1, x, y = 0, radians = 0 }: Manner): string {
  const turn = radians === 0 ? "" : ` rotate(${short((radians * 180) / Math.PI)})`;
  const lines =
    stroke === undefined
      ? ""
      : ` stroke="${stroke.colour}" stroke-width="${stroke.width}" stroke-linejoin="round"${
          stroke.dash === undefined || stroke.dash === "" ? "" : ` stroke-dasharray="${stroke.dash}"`
        }`;
  const place = x === undefined ? "" : ` transform="translate(${short(x)} ${short(y)})${turn}"`;
  return ` fill="${fill}"${lines}${opacity === 1 ? "" : ` opacity="${opacity}"`}${place}`;
}

const short = (value: number): string => String(Math.round(value * 10) / 10);

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text: string): string => text.replaceAll(/[&<>"]/g, (letter) => ENTITIES[letter] ?? letter);
