import { describe, expect, it } from "vitest";
import { errorLine, figure, fitted, spans, wrapped } from "./paragraph.ts";

it("wraps text at spaces, with an indent", () => {
  expect(wrapped("one two three four", 2, 10)).toBe("one two\n  three\n  four");
  expect(wrapped("short", 2, 10)).toBe("short");
  expect(wrapped("unbreakable", 0, 5)).toBe("unbreakable");
});

it("escapes control characters in errors that quote files", () => {
  expect(errorLine("error: got \u001b[31mred\u0000\u009b\u202e é\n  next")).toBe(
    "got \\u001b[31mred\\u0000\\u009b\\u202e é next",
  );
  expect(errorLine("x".repeat(5_000))).toHaveLength(1_001);
});

it("formats numbers", () => {
  expect([0, 12.34, 999, 1_000, 1_234_567.89].map(figure)).toEqual(["0", "12.3", "999", "1,000", "1,234,567.9"]);
});

it("formats consecutive ids as ranges", () => {
  expect([[], [3], [0, 1], [3, 0, 2, 1], [0, 1, 2, 5, 7, 8]].map(spans)).toEqual([
    "",
    "3",
    "0 and 1",
    "0–3",
    "0–2, 5, 7 and 8",
  ]);
});

describe("fitted", () => {
  it("keeps lines that fit", () => {
    const text = "Example:\n  $ coterie up    five processes\n\nExit codes: 0 ok.\n";
    expect(fitted(text, 40)).toBe(text);
  });

  it("wraps long lines and joins a sentence that continues on the next line", () => {
    expect(fitted("one two three four five six seven\neight nine. Ten\n\neleven", 20)).toBe(
      "one two three four\nfive six seven eight\nnine. Ten\n\neleven",
    );
    expect(fitted("a sentence that ends in its line.\nThe next one", 20)).toBe(
      "a sentence that ends\nin its line.\nThe next one",
    );
  });

  it("aligns the wrapped text with the description or with the joined line", () => {
    expect(fitted("  --word  what it does and when it does", 26)).toBe(
      "  --word  what it does and\n          when it does",
    );
    expect(fitted('With --json: { "a", "b", "c",\n  "d" }', 20)).toBe('With --json: { "a",\n  "b", "c", "d" }');
  });
});
