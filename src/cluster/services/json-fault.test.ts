import { describe, expect, test } from "vitest";
import { jsonFault, stateFault } from "./json-fault.ts";

const withHidden = <T extends object>(value: T): T => Object.defineProperty(value, "hidden", { value: 1 });

describe("keys that JSON drops", () => {
  const match = "v1.2".match(/v(?<major>\d)/);
  test.each([
    [match, "expected it to have no key that JSON omits, got it.index"],
    [
      { list: [Object.assign([1], { total: 1 })] },
      "expected it.list[0] to have no key that JSON omits, got it.list[0].total",
    ],
    [Object.assign([1], { "01": 1 }), "expected it to have no key that JSON omits, got it.01"],
    [[withHidden([1])], "expected it[0] to have no key that JSON omits, got it[0].hidden"],
    [{ a: withHidden({ b: 1 }) }, "expected it.a to have no key that JSON omits, got it.a.hidden"],
    [Object.assign([1], { [Symbol("lost")]: 1 }), "expected it to have no symbol keys"],
  ])("are faults of values and states (%#)", (value, fault) => {
    expect(jsonFault(value, "it")).toBe(fault);
    expect(stateFault(value, undefined, "it")).toBe(fault);
  });

  test("are found in a long value that replaces one without faults, in the complete check", () => {
    const before = { list: [1, 2], long: Array.from({ length: 2_000 }, (_, at) => at) };
    const fault = (key: string) => `expected it.${key} to have no key that JSON omits, got it.${key}.total`;
    const short = { ...before, list: Object.assign([1, 2, 3], { total: 6 }) };
    expect(stateFault(short, before, "it")).toBe(fault("list"));
    const long = { ...before, long: Object.assign([...before.long], { total: 6 }) };
    expect(stateFault(long, before, "it")).toBeNull();
    expect(stateFault(long, undefined, "it")).toBe(fault("long"));
  });

  test("are not found in plain data, with any names", () => {
    const named = JSON.parse('{ "length": 1, "__proto__": [], "0": [[]], "hasOwnProperty": null }') as unknown;
    for (const value of [
      [],
      [[1], []],
      named,
      Object.freeze([1]),
      {
        get sum() {
          return 1;
        },
      },
    ]) {
      expect(jsonFault(value, "it")).toBeNull();
      expect(stateFault(value, undefined, "it")).toBeNull();
    }
  });
});

test("an undefined field is a fault of a value and of a state", () => {
  const value = { list: [{ a: undefined }] };
  const fault = "expected it.list[0].a to be JSON data, got undefined";
  expect(jsonFault(value, "it")).toBe(fault);
  expect(stateFault(value, undefined, "it")).toBe(fault);
});
