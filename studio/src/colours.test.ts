/**
 * Tests that the page's colors are distinguishable with normal sight and without each of the three kinds of cones, in
 * light and dark themes. Similar colors differ in shape too.
 */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { Inkwell } from "../../src/trace/diagram/ink.ts";

type Rgb = readonly [number, number, number];
type Matrix = readonly [Rgb, Rgb, Rgb];

const style = readFileSync(new URL("page.css", import.meta.url), "utf8");
const themes = ["light", "dark"] as const;

function colour(name: string, theme: (typeof themes)[number]): Rgb {
  const [, light = "", dark = ""] =
    new RegExp(`${name}: light-dark\\(#([0-9a-f]{6}), #([0-9a-f]{6})\\)`).exec(style) ?? [];
  const hex = theme === "light" ? light : dark;
  const channel = (at: number) => Number.parseInt(hex.slice(at, at + 2), 16) / 255;
  return [channel(0), channel(2), channel(4)];
}

const each = (rgb: Rgb, change: (value: number) => number): Rgb => [change(rgb[0]), change(rgb[1]), change(rgb[2])];
const linear = (value: number): number => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
const times = (matrix: Matrix, [r, g, b]: Rgb): Rgb =>
  matrix.map(([x, y, z]) => x * r + y * g + z * b) as unknown as Rgb;

/**
 * Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency" (2009),
 * severity 1.
 */
const sights: Readonly<Record<string, Matrix>> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

/** Converts to OKLab (Ottosson 2020). Equal distances look about equally large. */
function perceived(rgb: Rgb): Rgb {
  const cones = each(
    times(
      [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
      ],
      rgb,
    ),
    Math.cbrt,
  );
  return times(
    [
      [0.2104542553, 0.793617785, -0.0040720468],
      [1.9779984951, -2.428592205, 0.4505937099],
      [0.0259040371, 0.7827717662, -0.808675766],
    ],
    cones,
  );
}

function seen(name: string, theme: (typeof themes)[number], sight: Matrix): Rgb {
  const light = times(sight, each(colour(name, theme), linear));
  return perceived(each(light, (value) => Math.min(1, Math.max(0, value))));
}

const distance = (a: Rgb, b: Rgb): number => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
const pairsOf = <T>(names: readonly T[]) =>
  names.flatMap((a, index) => names.slice(index + 1).map((b) => [a, b] as const));

const looks = themes.flatMap((theme) => Object.entries(sights).map(([sight, matrix]) => ({ theme, sight, matrix })));
const INKS = [0, 1, 2, 3, 4, 5, 6, 7];
/** Distances at which two colors are distinguishable: side by side, on their own, and at a glance. */
const [JUST, CLEAR, WELL] = [0.02, 0.03, 0.07];

describe.each(looks)("$sight, $theme", ({ theme, sight, matrix }) => {
  const between = (a: string, b: string) => distance(seen(a, theme, matrix), seen(b, theme, matrix));

  const pairs = pairsOf(INKS).map(([a, b]) => ({ a, b, apart: between(`--ink-${a}`, `--ink-${b}`) }));

  test("message inks differ in color", () => {
    const near = pairs.filter(({ apart }) => apart < (sight === "normal" ? WELL : JUST)).map(({ a, b }) => `${a} ${b}`);
    expect(near).toEqual([]);
  });

  test("similar inks differ in dashes and arrowheads", () => {
    for (const { a, b } of pairs.filter(({ apart }) => apart < WELL)) {
      expect.soft(lookOf(a).dash, `${a} and ${b}`).not.toBe(lookOf(b).dash);
      expect.soft(lookOf(a).head, `${a} and ${b}`).not.toBe(lookOf(b).head);
    }
  });

  test("bands, spans and marks with different meanings differ in color", () => {
    const meanings = [
      ["--delivered", "--gold"],
      ["--delivered", "--danger"],
      ["--accent", "--gold"],
      ["--accent", "--danger"],
      ["--accent", "--delivered"],
      ["--danger", "--gold"],
      ["--danger", "--ink"],
      ["--gold", "--ink"],
    ] as const;
    for (const [a, b] of meanings) expect.soft(between(a, b), `${a} and ${b}`).toBeGreaterThan(CLEAR);
  });

  test("everything contrasts with the sheet", () => {
    const drawn = [...INKS.map((slot) => `--ink-${slot}`), "--ink", "--ink-soft", "--accent", "--danger", "--gold"];
    for (const name of [...drawn, "--delivered", "--held-edge"])
      expect.soft(between(name, "--sheet"), name).toBeGreaterThan(0.3);
  });
});

test("every color used here is defined by the page", () => {
  for (const theme of themes)
    for (const slot of INKS) expect(colour(`--ink-${slot}`, theme).every(Number.isFinite)).toBe(true);
});

function lookOf(slot: number): { readonly dash: string; readonly head: string } {
  const { dash, head } = new Inkwell({ message: slot }).of("message");
  return { dash, head: head.path };
}
