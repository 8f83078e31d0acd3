/** The key to a picture: a sample and a word for all that occurs in it, and nothing else. */

import type { Ink, Inkwell } from "../diagram/ink.ts";
import { nameOf } from "../naming.ts";
import type { Fate } from "./arrows.ts";
import type { Picture } from "./layout.ts";
import type { MarkKind } from "./marks.ts";
import { textWidth } from "./text-width.ts";

export type Sample =
  | { readonly sort: "message"; readonly ink: Ink }
  | { readonly sort: "mark"; readonly mark: MarkKind }
  | { readonly sort: "fate"; readonly fate: Fate }
  | { readonly sort: "line"; readonly line: "leads" | "paused" | "down" }
  | { readonly sort: "track" }
  | { readonly sort: "break" };

export interface Key {
  readonly sample: Sample;
  readonly text: string;
  readonly x: number;
  readonly row: number;
}

export const LEGEND_PX = 11;
export const SAMPLE_PX = 34;
const AFTER_PX = 22;

const marks: readonly (readonly [MarkKind, string])[] = [
  ["start", "start"],
  ["crash", "crash"],
  ["command", "command"],
  ["timeout", "timeout"],
  ["event", "event"],
  ["delivery", "delivery"],
  ["choice", "choice"],
  ["fault", "fault"],
  ["gap", "entries missing"],
];

/** From left to right in rows of at most so many pixels. */
export function legendOf(picture: Picture, inkwell: Inkwell, width: number): Key[] {
  const keys: Key[] = [];
  let [x, row] = [0, 0];
  for (const { sample, text } of meanings(picture, inkwell)) {
    const needed = SAMPLE_PX + 6 + textWidth(text, LEGEND_PX);
    if (x > 0 && x + needed > width) [x, row] = [0, row + 1];
    keys.push({ sample, text, x, row });
    x += needed + AFTER_PX;
  }
  return keys;
}

function meanings(picture: Picture, inkwell: Inkwell): { sample: Sample; text: string }[] {
  const { arrows, steps, stretches, breaks, tracks } = picture;
  const types = new Map(arrows.map(({ flight }) => [nameOf(flight.message).full, nameOf(flight.message).short]));
  const fates = new Set(arrows.map(({ fate }) => fate));
  const marked = new Set(steps.flatMap(({ inscription }) => inscription.marks));
  const line = (name: "leads" | "paused" | "down", text: string) => ({
    sample: { sort: "line", line: name } as const,
    text,
  });
  const fate = (name: Fate, text: string) => ({ sample: { sort: "fate", fate: name } as const, text });
  return [
    ...[...types].map(([full, short]) => ({
      sample: { sort: "message", ink: inkwell.of(full) } as const,
      text: short,
    })),
    ...(fates.has("lost") ? [fate("lost", "lost message")] : []),
    ...(fates.has("flying") ? [fate("flying", "in flight")] : []),
    ...(fates.has("arriving") ? [fate("arriving", "sent earlier")] : []),
    ...marks
      .filter(([mark]) => marked.has(mark))
      .map(([mark, text]) => ({ sample: { sort: "mark", mark } as const, text })),
    ...(tracks.length > 0 ? [{ sample: { sort: "track" } as const, text: "held back" }] : []),
    ...(stretches.some(({ leads }) => leads) ? [line("leads", "leader")] : []),
    ...(stretches.some(({ condition }) => condition === "paused") ? [line("paused", "paused")] : []),
    ...(stretches.some(({ condition }) => condition === "down") ? [line("down", "not running")] : []),
    ...(breaks.length > 0 ? [{ sample: { sort: "break" } as const, text: "time skipped" }] : []),
  ];
}
