import { expect, test } from "vitest";
import type { Letter } from "./lettering.ts";
import { paintThings, paintWords, VEIL } from "./paint.ts";
import type { Picture } from "./picture.ts";
import type { Surface } from "./surface.ts";

/** Labels in the middle of three arrows: one spans the cursor at 100, one is before it, one is after it. */
const letters = [
  { text: "under way", x: 150, of: 90 },
  { text: "arrived", x: 70, of: 40 },
  { text: "to come", x: 180, of: 160 },
].map((letter): Letter => ({ ...letter, key: letter.text, y: 0, radians: 0, style: "arrow", colour: "--ink" }));

function wordsUnder(veil: number): string[] {
  const shown: string[] = [];
  const surface = { words: (text: string) => void shown.push(text) } as unknown as Surface;
  paintWords(surface, { letters }, { theme: () => "", until: 100, veil });
  return shown;
}

test("omits labels after the cursor; with an opaque veil, also those at the hidden part of an arrow", () => {
  expect(wordsUnder(VEIL)).toEqual(["under way", "arrived"]);
  expect(wordsUnder(1)).toEqual(["arrived"]);
});

/** Times on the axis of a window 400 wide, with a veil after the cursor at 200. */
function timesUnder(veil: number): string[] {
  const shown: string[] = [];
  const surface = { words: (text: string) => void shown.push(text), lines: () => {} } as unknown as Surface;
  const ticks = [3, 100, 195, 300].map((at) => ({ at, text: `${at} мс` }));
  const frame = { from: 0, to: 400, width: 400, nodes: [], rowHeight: 10, top: 10, origin: null, still: true };
  const nothing = {
    breaks: [],
    spans: [],
    states: [],
    tracks: [],
    lines: [],
    arrows: [],
    crowd: null,
    clocks: [],
    marks: [],
  };
  const picture = { ...nothing, frame, height: 100, axis: { ticks, origin: null } } as unknown as Picture;
  paintThings(surface, picture, { theme: () => "", inkOf: () => ({ slot: 0 }) as never, until: 200, veil });
  return shown;
}

test("cuts off no time on the axis, neither at the edge nor at an opaque veil", () => {
  expect(timesUnder(VEIL)).toEqual(["100 мс", "195 мс", "300 мс"]);
  expect(timesUnder(1)).toEqual(["100 мс"]);
});
