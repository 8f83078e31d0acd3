/** Exports the picture on the screen as SVG or PNG, with its title above it and the node names to the left. */

import { yOf } from "./frame.ts";
import { type Paint, paint } from "./paint.ts";
import { AXIS_PX, type Picture } from "./picture.ts";
import { SvgSurface } from "./surface.ts";

export interface Shown {
  readonly title: string;
  nameOf(node: number): string;
  readonly picture: Picture;
  /** The items related to the one under the cursor, if all others should be dimmed. Otherwise null. */
  readonly related: Picture | null;
  /** The opacity of the dimmed items. */
  readonly dimmed: number;
  /** The width of the column that contains the names. */
  readonly namesPx: number;
  readonly unit: string;
}

const TITLE_PX = 40;
/** The resolution of a PNG relative to the screen. It is higher so that the PNG can be printed. */
const RATIO = 2;

export function svgOf(shown: Shown, how: Paint): string {
  const surface = new SvgSurface();
  const { width, height } = sizeOf(shown);
  paintNames(surface, shown, how);
  for (const { picture, isPlain, opacity, ...place } of layersOf(shown))
    surface.inside({ ...place, opacity }, () => paint(surface, picture, isPlain ? unveiled(how) : how));
  return surface.document(width, height, how.theme("--sheet"), shown.title);
}

/** Renders the same picture as a PNG. @param svg the result of `svgOf` */
export async function pngOf(svg: string): Promise<Blob> {
  const image = new Image();
  // A data URL, because the page's content security policy does not allow blob URLs.
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width * RATIO, image.height * RATIO);
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.convertToBlob({ type: "image/png" });
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

/** Removes the veil, because items related to the one under the cursor are visible even if they come later. */
const unveiled = (how: Paint): Paint => ({ ...how, until: Number.POSITIVE_INFINITY });

function paintNames(surface: SvgSurface, { title, nameOf, picture, namesPx, unit }: Shown, { theme }: Paint): void {
  surface.words(title, 14, 27, { colour: theme("--ink"), px: 17, family: "serif", italic: true });
  const edge = namesPx - 8;
  for (const node of picture.frame.nodes) {
    const look = { colour: theme("--ink"), px: 12.5, family: "sans", weight: 600, anchor: "end" } as const;
    surface.words(nameOf(node), edge, TITLE_PX + (yOf(node, picture.frame) ?? 0) + 4.5, look);
  }
  const soft = { colour: theme("--ink-soft"), px: 12, family: "sans", anchor: "end" } as const;
  surface.words(unit, edge, TITLE_PX + picture.height - AXIS_PX + 19, soft);
}

/** Saves the file using the browser. */
export function save(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
