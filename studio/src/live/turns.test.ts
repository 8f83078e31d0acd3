import { expect, test } from "vitest";
import { type Piece, Turns } from "./turns.ts";

/** Returns the piece that draws in each frame, if these request in this order. */
function drawn(turns: Turns, frames: readonly (readonly Piece[])[], from = 0): Piece[][] {
  return frames.map((asking, index) => asking.filter((piece) => turns.take(piece, from + index * 16)));
}

test("lets only one piece draw per frame", () => {
  expect(drawn(new Turns(), [["words", "layout"], ["layout"], ["layout"], []])).toEqual([
    ["words"],
    ["layout"],
    ["layout"],
    [],
  ]);
});

test("gives a turn to every piece that keeps requesting one, no matter how often the others request", () => {
  const all: readonly Piece[] = ["words", "log", "layout", "pixels"];
  expect(
    drawn(
      new Turns(),
      Array.from({ length: 6 }, () => all),
    ).flat(),
  ).toEqual([...all, "words", "log"]);
});

test("delays the others by at most one frame if a refused piece no longer requests", () => {
  expect(drawn(new Turns(), [["words", "log"], ["words"], ["words"]])).toEqual([["words"], [], ["words"]]);
});
