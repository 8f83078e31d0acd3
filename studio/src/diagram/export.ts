/** What is on the screen, as a file: the same picture on SVG instead of a canvas, or the canvas as it is, with the nodes' names. */

import { yOf } from "./frame.ts";
import { type Paint, paint } from "./paint.ts";
import type { Picture } from "./picture.ts";
import { ScreenSurface, type Surface, SvgSurface } from "./surface.ts";

const NAMES_PX = 62;
/** A picture for print: twice as fine as the screen. */
const RATIO = 2;

export function svgOf(picture: Picture, how: Paint, title: string): string {
  const surface = new SvgSurface();
  surface.moved(NAMES_PX, () => paint(surface, picture, how));
  paintNames(surface, picture, how);
  return surface.document(picture.frame.width + NAMES_PX, picture.height, how.theme("--sheet"), title);
}

export async function pngOf(picture: Picture, how: Paint): Promise<Blob> {
  const canvas = document.createElement("canvas");
  canvas.width = picture.frame.width * RATIO;
  canvas.height = picture.height * RATIO;
  const whole = document.createElement("canvas");
  whole.width = (picture.frame.width + NAMES_PX) * RATIO;
  whole.height = canvas.height;
  const [inner, outer] = [canvas.getContext("2d"), whole.getContext("2d")];
  if (inner === null || outer === null) throw new Error("expected a canvas to draw on, got none");
  paint(new ScreenSurface(inner, RATIO), picture, how);
  const names = new ScreenSurface(outer, RATIO);
  names.box(0, 0, whole.width, whole.height, { fill: how.theme("--sheet") });
  paintNames(names, picture, how);
  outer.setTransform(1, 0, 0, 1, 0, 0);
  outer.globalAlpha = 1;
  outer.drawImage(canvas, NAMES_PX * RATIO, 0);
  return new Promise((resolve, reject) =>
    whole.toBlob(
      (blob) => (blob === null ? reject(new Error("expected a picture, got none")) : resolve(blob)),
      "image/png",
    ),
  );
}

function paintNames(surface: Surface, { frame }: Picture, { theme }: Paint): void {
  for (const node of frame.nodes) {
    const look = { colour: theme("--ink"), px: 12.5, family: "sans", weight: 600, anchor: "end" } as const;
    surface.words(`node ${node}`, NAMES_PX - 8, (yOf(node, frame) ?? 0) + 4.5, look);
  }
}

/** Hands it to the browser, which asks or saves. */
export function save(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
