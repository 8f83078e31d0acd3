import { expect, test } from "vitest";
import { Inkwell } from "./ink.ts";

const declared = { election: 0, "election.election": 0, answer: 1, coordinator: 2 };

test("a declared type has the same ink under all its names, in any order of drawing", () => {
  const names = Object.keys(declared);
  const [one, other] = [new Inkwell(declared), new Inkwell(declared)];
  const first = names.map((name) => one.of(name));
  const second = names.toReversed().map((name) => other.of(name));
  expect(second.toReversed()).toEqual(first);
  expect(new Set(first).size).toBe(3);
  expect(one.of("election.election")).toBe(one.of("election"));
});

test("a message inside further parts of an assembly has the same ink", () => {
  const inkwell = new Inkwell(declared);
  expect(inkwell.of("node 1.part.answer")).toBe(inkwell.of("answer"));
  expect(inkwell.of("election.coordinators")).not.toBe(inkwell.of("coordinator"));
});

test("twenty declared types differ in color or shape", () => {
  const names = Array.from({ length: 20 }, (_, index) => `part.type${index}`);
  const inkwell = new Inkwell(Object.fromEntries(names.map((name, place) => [name, place])));
  expect(new Set(names.map((name) => JSON.stringify(inkwell.of(name)))).size).toBe(20);
});

test("undeclared types never take the ink of another type", () => {
  const inkwell = new Inkwell(declared);
  const known = new Set(Object.keys(declared).map((name) => inkwell.of(name)));
  for (const name of ["renew", "confirm", "release", "told", "yield"]) {
    expect(known).not.toContain(inkwell.of(name));
    known.add(inkwell.of(name));
  }
});
