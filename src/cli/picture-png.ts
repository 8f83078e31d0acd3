/** SVG to PNG. The renderer is an optional dependency: who never asks for PNG does not need its binary. */
import { EnvironmentError } from "../core/errors.ts";

/** Twice the size in pixels: sharp in print and on dense screens. */
const ZOOM = 2;

/** @throws EnvironmentError where the renderer is not installed */
export async function pngOf(svg: string): Promise<Buffer> {
  const { Resvg } = await import("@resvg/resvg-js").catch((error: unknown) => {
    throw new EnvironmentError(
      "no-renderer",
      "a PNG needs the package @resvg/resvg-js, which is not installed: npm i @resvg/resvg-js, or choose --svg",
      { cause: error },
    );
  });
  return new Resvg(svg, { fitTo: { mode: "zoom", value: ZOOM }, font: { defaultFontFamily: "DejaVu Sans" } })
    .render()
    .asPng();
}
