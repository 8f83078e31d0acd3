import { expect, it } from "vitest";
import { duration } from "./options.ts";

const parse = duration("--timeout");

it.each([
  ["250ms", 250],
  ["5s", 5_000],
  ["1.5s", 1_500],
  ["2m", 120_000],
  ["1h", 3_600_000],
])("parses %s as %d ms", (text, ms) => expect(parse(text)).toBe(ms));

it("names the longest duration, if there is a limit", () => {
  const bounded = duration("--timeout", 600_000);
  expect(bounded("10m")).toBe(600_000);
  expect(() => bounded("20m")).toThrow(
    'expected --timeout to be a time such as 250ms, 5s or 2m, at most 10m, got "20m"',
  );
});

it.each(["", "5", "s", "-5s", "5 s", "0s", "0.1ms", "1d", "5sec", "1e3s", "600h"])("rejects %j", (text) =>
  expect(() => parse(text)).toThrow("expected --timeout to be a time such as 250ms, 5s or 2m, got"),
);
