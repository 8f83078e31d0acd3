import { expect, test } from "vitest";
import { fieldName, fieldText, fieldValue, optionAt, withOption } from "./option-values.ts";

test("puts an option at its path, and removes parts without options", () => {
  const one = withOption("", ["mutex", "leaseMs"], 300);
  expect(one).toBe('{"mutex":{"leaseMs":300}}');
  const two = withOption(one, ["workload", "stayMs"], 9);
  expect(optionAt(two, ["mutex", "leaseMs"])).toBe(300);
  expect(optionAt(two, ["mutex", "renewMs"])).toBeUndefined();
  expect(withOption(two, ["mutex", "leaseMs"], undefined)).toBe('{"workload":{"stayMs":9}}');
  expect(withOption(one, ["mutex", "leaseMs"], undefined)).toBe("");
});

test("treats invalid options in a link as none", () => {
  for (const text of ["[1]", "no JSON", "7"]) expect(optionAt(text, ["f"])).toBeUndefined();
  expect(withOption("no JSON", ["f"], 1)).toBe('{"f":1}');
});

test.each([
  ["whole", "12", 12],
  ["number", "0.5", 0.5],
  ["number", "soon", undefined],
  ["switch", "true", true],
  ["choice", "map", "map"],
  ["nodes", "1, 15,x", [1, 15]],
  ["json", '[["a"]]', [["a"]]],
  ["json", "[[", undefined],
  ["text", " ", undefined],
] as const)("%s: “%s”", (kind, text, value) => {
  expect(fieldValue({ kind }, text)).toEqual(value);
  if (value !== undefined) expect(fieldValue({ kind }, fieldText({ kind }, value))).toEqual(value);
});

test("separates the unit of a duration", () => {
  expect(fieldName("maxBackOffMs")).toEqual({ words: "max back off", unit: "ms" });
  expect(fieldName("ring")).toEqual({ words: "ring", unit: "" });
});
