import { expect, test } from "vitest";
import { type Piece, Turns } from "./turns.ts";

/** Who draws in each frame, where these ask in this order. */
function drawn(turns: Turns, frames: readonly (readonly Piece[])[], from = 0): Piece[][] {
  return frames.map((asking, index) => asking.filter((piece) => turns.take(piece, from + index * 16)));
}

test("no two draw in one frame", () => {
  expect(drawn(new Turns(), [["words", "layout"], ["layout"], ["layout"], []])).toEqual([
    ["words"],
    ["layout"],
    ["layout"],
    [],
  ]);
});

test("who asks again and again gets a turn, however often the others ask", () => {
  const all: readonly Piece[] = ["words", "log", "layout", "pixels"];
  expect(
    drawn(
      new Turns(),
      Array.from({ length: 6 }, () => all),
    ).flat(),
  ).toEqual([...all, "words", "log"]);
});

test("who was refused and has nothing to draw any more keeps the others waiting for one frame at most", () => {
  expect(drawn(new Turns(), [["words", "log"], ["words"], ["words"]])).toEqual([["words"], [], ["words"]]);
});
