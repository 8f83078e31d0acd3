import { expect, test } from "vitest";
import { Inkwell } from "./ink.ts";

test("a declared type has the same ink, whatever is drawn first", () => {
  const declared = ["election", "answer", "coordinator"];
  const [one, other] = [new Inkwell(declared), new Inkwell(declared)];
  const first = declared.map((type) => one.of(type));
  const second = declared.toReversed().map((type) => other.of(type));
  expect(second.toReversed()).toEqual(first);
  expect(new Set(first).size).toBe(3);
});
