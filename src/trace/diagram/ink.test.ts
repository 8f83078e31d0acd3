import { expect, test } from "vitest";
import { Inkwell, inkOrder } from "./ink.ts";

test("a declared type has the same ink, whatever is drawn first", () => {
  const declared = ["election", "answer", "coordinator"];
  const [one, other] = [new Inkwell(declared), new Inkwell(declared)];
  const first = declared.map((type) => one.of(type));
  const second = declared.toReversed().map((type) => other.of(type));
  expect(second.toReversed()).toEqual(first);
  expect(new Set(first).size).toBe(3);
});

test("sixteen declared types differ in colour or shape, and those that keep coming are last", () => {
  const names = Array.from({ length: 16 }, (_, index) => `part.type${index}`);
  const inkwell = new Inkwell(names);
  expect(new Set(names.map((name) => JSON.stringify(inkwell.of(name)))).size).toBe(16);
  expect(inkOrder(["log.heartbeat", "log.vote", "detector.alive"], ["heartbeat", "alive"])).toEqual([
    "log.vote",
    "log.heartbeat",
    "detector.alive",
  ]);
});
