import { describe, expect, it } from "vitest";
import { readEdn } from "./edn.ts";

const values = (text: string) => [...readEdn(text)].map(({ value }) => value);

describe("EDN", () => {
  it.each([
    ["nil true false", [null, true, false]],
    ["0 -7 +3 42N 1.5 -2e3 3.25M 1. -0", [0, -7, 3, 42, 1.5, -2000, 3.25, 1, 0]],
    ["9007199254740993 9007199254740993N", ["9007199254740993", "9007199254740993"]],
    [":write :jepsen/op cas-register :a:b ok?", ["write", "jepsen/op", "cas-register", "a:b", "ok?"]],
    ['"a \\"b\\" \\\\ \\n\\t\\u00e9 ; no comment"', ['a "b" \\ \n\té ; no comment']],
    ['"two\nlines"', ["two\nlines"]],
    ["\\a \\newline \\space \\u0041 \\( \\é", ["a", "\n", " ", "A", "(", "é"]],
    ["(1 (2) [3 []])", [[1, [2], [3, []]]]],
    ["#{3 1 2}", [[1, 2, 3]]],
    ["{:a 1, :b {:c nil}}", [{ a: 1, b: { c: null } }]],
    ["{1 2 [3] 4}", [{ "1": 2, "[3]": 4 }]],
    ["{:__proto__ 1}", [JSON.parse('{"__proto__":1}')]],
    ['#inst "2026-01-01" #jepsen.history.Op{:f :read} #a #b 3', ["2026-01-01", { f: "read" }, 3]],
    ["1 #_2 3 #_ #_ 4 5 {:a #_b 6} #_7", [1, 3, { a: 6 }]],
    ["; a comment\n1 ; another\n,,2", [1, 2]],
    ["[1 2] [3]", [1, 2, 3]],
    ["", []],
    ["[]", []],
  ])("%j", (text, expected) => {
    expect(values(text)).toEqual(expected);
  });

  it("reports the position of each form, also inside a vector", () => {
    expect([...readEdn("1\n  [2\n 3 ; x\n\t4]")].map(({ line, column }) => [line, column])).toEqual([
      [1, 1],
      [2, 4],
      [3, 2],
      [4, 2],
    ]);
  });

  it.each([
    ["{:a 1", 'line 1, column 1: expected "{" to be closed by "}", got the end'],
    ["1\n [2\n 3", 'line 2, column 2: expected "[" to be closed by "]", got the end'],
    ["{:a 1]", 'line 1, column 6: expected a form, got an unmatched "]"'],
    ["\n)", 'line 2, column 1: expected a form, got an unmatched ")"'],
    ["{:a}", "line 1, column 1: expected a value for every key of the map, got 1 forms"],
    ["{:a 1 :a 2}", "expected every key of the map to occur once, got a again"],
    ['\n "abc', 'line 2, column 2: expected the string to be closed by ", got the end'],
    ['"a\\q"', 'line 1, column 3: expected an escape (\\n \\r \\t \\b \\f \\" \\\\ \\uXXXX), got \\q'],
    ['"\\u12x4"', "expected four hexadecimal digits after \\u, got 12x4"],
    ["\\newlin", "expected a character such as \\a, \\newline or \\u0041, got \\newlin"],
    ["12x", "line 1, column 1: expected a form, got 12x"],
    ["007", "line 1, column 1: expected a form, got 007"],
    [":", "expected a form, got :"],
    ["#", "expected a set #{…}, a tag or #_, got #"],
    ["##Inf", "expected a set #{…}, a tag or #_, got ##Inf"],
    ["#tag", "expected a form, got the end"],
    ["#_", "expected a form, got the end"],
    ["[".repeat(100), "line 1, column 66: expected forms nested at most 64 deep, got deeper ones"],
    ["#a ".repeat(100), "expected forms nested at most 64 deep, got deeper ones"],
    ["#_".repeat(80), "expected forms nested at most 64 deep, got deeper ones"],
  ])("%j is rejected", (text, message) => {
    expect(() => values(text)).toThrow(message);
  });
});
