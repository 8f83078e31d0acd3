/** What is on the screen, as a file: the same picture on SVG or on one canvas, below its title and beside the nodes' names. */
import { yOf } from "./frame.ts";
import { type Paint, paint } from "./paint.ts";
import { AXIS_PX, type Picture } from "./picture.ts";
import { ScreenSurface, type Surface, SvgSurface } from "./surface.ts";

export interface Shown {
  readonly title: string;
  nameOf(node: number): string;
  readonly picture: Picture;
  /** Where only what belongs to the cursor is plain, that; all else is dimmed. */
  readonly related: Picture | null;
  /** How much of all else is seen then. */
  readonly dimmed: number;
  /** Of the column of names. */
  readonly namesPx: number;
  /** What the axis counts. */
  readonly unit: string;
}

const TITLE_PX = 40;
/** A picture for print: twice as fine as the screen. */
const RATIO = 2;

export function svgOf(shown: Shown, how: Paint): string {
  const surface = new SvgSurface();
  const { width, height } = sizeOf(shown);
  paintNames(surface, shown, how);
  for (const { picture, isPlain, opacity, ...place } of layersOf(shown))
    surface.inside({ ...place, opacity }, () => paint(surface, picture, isPlain ? unveiled(how) : how));
  return surface.document(width, height, how.theme("--sheet"), shown.title);
}

export async function pngOf(shown: Shown, how: Paint): Promise<Blob> {
  const { width, height } = sizeOf(shown);
  const [whole, outer] = canvasOf(width, height);
  const surface = new ScreenSurface(outer, RATIO);
  surface.box(0, 0, width, height, { fill: how.theme("--sheet") });
  paintNames(surface, shown, how);
  for (const { x, y, opacity, picture, isPlain, ...size } of layersOf(shown)) {
    const [layer, inner] = canvasOf(size.width, size.height);
    paint(new ScreenSurface(inner, RATIO), picture, isPlain ? unveiled(how) : how);
    outer.setTransform(1, 0, 0, 1, 0, 0);
    outer.globalAlpha = opacity;
    outer.drawImage(layer, x * RATIO, y * RATIO);
  }
  return new Promise((resolve, reject) =>
    whole.toBlob(
      (blob) => (blob === null ? reject(new Error("expected a picture, got none")) : resolve(blob)),
      "image/png",
    ),
  );
}

const sizeOf = ({ picture: { frame, height }, namesPx }: Shown) => ({
  width: frame.width + namesPx,
  height: height + TITLE_PX,
});

function layersOf({ picture, related, dimmed, namesPx }: Shown) {
  const place = { x: namesPx, y: TITLE_PX, width: picture.frame.width, height: picture.height };
  if (related === null) return [{ ...place, picture, opacity: 1, isPlain: false }];
  return [
    { ...place, picture, opacity: dimmed, isPlain: false },
    { ...place, picture: related, opacity: 1, isPlain: true },
  ];
}

/** Of what belongs to the cursor, what comes after is plain, too. */
const unveiled = (how: Paint): Paint => ({ ...how, until: Number.POSITIVE_INFINITY });

function canvasOf(width: number, height: number): [HTMLCanvasElement, CanvasRenderingContext2D] {
  const canvas = document.createElement("canvas");
  canvas.width = width * RATIO;
  canvas.height = height * RATIO;
  const context = canvas.getContext("2d");
  if (context === null) throw new Error("expected a canvas to draw on, got none");
  return [canvas, context];
}

function paintNames(surface: Surface, { title, nameOf, picture, namesPx, unit }: Shown, { theme }: Paint): void {
  surface.words(title, 14, 27, { colour: theme("--ink"), px: 17, family: "serif", italic: true });
  const edge = namesPx - 8;
  for (const node of picture.frame.nodes) {
    const look = { colour: theme("--ink"), px: 12.5, family: "sans", weight: 600, anchor: "end" } as const;
    surface.words(nameOf(node), edge, TITLE_PX + (yOf(node, picture.frame) ?? 0) + 4.5, look);
  }
  const soft = { colour: theme("--ink-soft"), px: 12, family: "sans", anchor: "end" } as const;
  surface.words(unit, edge, TITLE_PX + picture.height - AXIS_PX + 19, soft);
}

/** Hands it to the browser, which asks or saves. */
export function save(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
