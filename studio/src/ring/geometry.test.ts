import { expect, test } from "vitest";
import { lastOfEachLink } from "./geometry.ts";

test("of the messages of one link the last glows, in whichever direction it went", () => {
  const [a, b, c, d] = [
    { from: 0, to: 1 },
    { from: 1, to: 2 },
    { from: 1, to: 0 },
    { from: 2, to: 0 },
  ];
  expect(lastOfEachLink([a, b, c, d])).toEqual([c, b, d]);
});
