import { describe, expect, it } from "vitest";
import { everyKind } from "../../../test/trace/small-traces.ts";
import { excerptOf } from "../excerpt.ts";
import { darkStyle, inDark } from "./dark.ts";
import { drawSvg } from "./svg.ts";

/** Returns the WCAG luminance of a color, from 0 to 1. */
function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5]
    .map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.039_28 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)) as [number, number, number];
  return 0.212_6 * r + 0.715_2 * g + 0.072_2 * b;
}

function contrast(a: string, b: string): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

describe("a picture in dark mode", () => {
  it("keeps the rules for paper, followed by those that differ in dark mode", () => {
    const style = "#p text { font-size: 3px }\n#p .label { fill: #1c2733; stroke: #ffffff; stroke-width: 3px }";
    expect(darkStyle(style, '<g fill="#1f5fa8"/><g fill="#1f5fa8"/>', "#p ").split("\n")).toEqual([
      "@media screen and (prefers-color-scheme: dark) {",
      '#p [fill="#1f5fa8"] { fill: #81b1ff }',
      "#p .label { fill: #ece7dc; stroke: #1a1d22 }",
      "}",
    ]);
  });

  it("rejects a color without a dark counterpart", () => {
    expect(() => darkStyle("", '<g fill="#123456"/>')).toThrow("expected a color with a dark variant");
  });

  it("of measurements has lines and texts in colors that contrast with the background", () => {
    const lines = ["#1d4ed8", "#0f766e", "#7c3aed", "#c2410c", "#b45309", "#15803d", "#0369a1", "#1c2733"];
    const drawn = lines.map((colour) => `<path stroke="${colour}"/>`).join("");
    const svg = inDark(`<svg><title>t</title><rect fill="#ffffff"/>${drawn}</svg>`);
    expect(svg).toMatch(/^<svg><title>t<\/title>\n<style>\n@media screen and \(prefers-color-scheme: dark\) \{/);
    const ground = /\[fill="#ffffff"\] \{ fill: (#\w+) \}/.exec(svg)?.[1] as string;
    const colours = [...svg.matchAll(/\[stroke="#\w+"\] \{ stroke: (#\w+) \}/g)].map(([, colour]) => colour as string);
    expect(new Set(colours).size).toBe(lines.length);
    for (const colour of colours) expect.soft(contrast(colour, ground), colour).toBeGreaterThan(4.5);
  });

  it("is readable: texts and all inks contrast with the background", () => {
    const [, dark = ""] = drawSvg(excerptOf(everyKind)).split("@media screen and (prefers-color-scheme: dark) {\n");
    const ground = /\[fill="#ffffff"\] \{ fill: (#\w+) \}/.exec(dark)?.[1] as string;
    const inks = [...dark.matchAll(/\[(?:fill|stroke)="(?!#ffffff)#\w+"\] \{ (?:fill|stroke): (#\w+) \}/g)];
    const words = [...dark.matchAll(/\.(?:role|tick|unit|delivered) \{ fill: (#\w+) \}/g)];
    expect(inks.length).toBeGreaterThan(4);
    expect(words).toHaveLength(4);
    for (const [rule, colour = ""] of [...inks, ...words])
      expect.soft(contrast(colour, ground), rule).toBeGreaterThan(4.5);
  });
});
